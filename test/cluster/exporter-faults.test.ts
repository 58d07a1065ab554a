import { describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { ExporterPods } from '../../operator/server/kubernetes/exporter/settings.ts'
import { openServerBench } from './server-bench.ts'
import { clientsOf } from './setup/commands.ts'
import { patient } from '../support/patience.ts'

/** Failures of an exporter, which are not those of the server beside it. */

const { kubectl } = clientsOf(process.env.KUBECONFIG ?? '')
const PATIENCE = { timeout: 180_000, interval: 1_000 }

const FAULTS = [
  {
    does: 'whose image is missing',
    image: 'localhost/exporter:missing',
    isFailed: ({ waits }: Exporter) => waits.includes('Image'),
  },
  // The program in the image of Mooring rejects the arguments of an exporter.
  { does: 'that crashes', image: inject('cluster').image, isFailed: ({ restarts }: Exporter) => restarts > 0 },
]

interface Exporter {
  readonly restarts: number
  /** Reason why the container does not run. */
  readonly waits: string
}

const Pod = z.object({
  status: z.object({
    containerStatuses: z.array(
      z.object({
        name: z.string(),
        restartCount: z.int(),
        state: z.object({ waiting: z.object({ reason: z.string() }).optional() }),
      }),
    ),
  }),
})

describe.each(FAULTS)('a server beside an exporter $does', ({ image, isFailed }) => {
  test('runs and serves clients', { timeout: patient(600_000) }, async () => {
    const settings = { images: { postgresql: image }, prometheus: { namespace: 'monitoring' }, podMonitor: { enabled: false } }
    await using bench = await openServerBench({ exporters: ExporterPods.parse(JSON.stringify(settings)) })
    const server = await bench.addServer({
      access: { organization: 'acme', isPrivate: false },
      monitoring: { namespace: 'acme--prod', database: 'orders' },
    })
    await bench.running(server)

    const exporterOf = async (): Promise<Exporter> => {
      const pod = ['get', 'pod', `${server.metadata.name}-0`, '--namespace', bench.namespace, '--output', 'json']
      const { containerStatuses } = Pod.parse(JSON.parse(await kubectl(pod))).status
      const { restartCount = 0, state } = containerStatuses.find(({ name }) => name === 'exporter') ?? {}
      return { restarts: restartCount, waits: state?.waiting?.reason ?? '' }
    }
    await expect.poll(async () => isFailed(await exporterOf()), PATIENCE).toBe(true)
    expect(await bench.ensure(server)).toMatchObject({ phase: 'running' })
    const session = await bench.connect(server)
    expect((await session.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })
})
