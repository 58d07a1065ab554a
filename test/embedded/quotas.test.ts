import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { namespaceName } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { createEmbeddedStore } from '../../store/embedded.ts'
import { codeOf } from '../support/api/answers.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { LATER } from '../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const NAMES = Array.from({ length: 5 }, (_, index) => `made-${index}`)
const QUOTAS = ['--quota-instances', '2', '--quota-tunnels', '2']

/** Creates five tunnels and five instances directly in the store while Mooring is stopped. */
async function makeFive({ dataDir, ready }: Mooring): Promise<void> {
  await using store = await createEmbeddedStore({ path: join(dataDir, 'state.db') })
  const namespace = namespaceName('default', 'default')
  for (const name of NAMES) {
    await store.create(Tunnel, { metadata: { namespace, name }, spec: { regionId: ready.regionId } })
    const spec = { identifier: name, region: ready.region, motor: 'postgresql-15.4.0' } as const
    await store.create(SharedInstance, { metadata: { namespace, name }, spec })
  }
}

test('resources created without REST are served up to the quota; the rest waits and is served after a deletion', async () => {
  await using first = await startMooring()
  first.process.kill('SIGTERM')
  await once(first.process, 'exit')
  await makeFive(first)

  await using mooring = await startMooring({ dataDir: first.dataDir, args: QUOTAS })
  const list = async (path: string) => (await mooring.call('GET', path)).body.data
  const kinds = [
    {
      path: '/v1/instances',
      body: { identifier: 'x', region: mooring.ready.region, motor: 'postgresql-15.4.0' },
      those: async () => (await list('/v1/instances')).instances.filter(({ host }) => Boolean(host)),
    },
    {
      path: TUNNELS,
      body: { name: 'x', regionId: mooring.ready.regionId },
      those: async () => (await list(TUNNELS)).tunnels.filter(({ url }) => Boolean(url)),
    },
  ]
  for (const { path, body, those } of kinds) {
    await vi.waitFor(async () => expect(await those()).toHaveLength(2), LATER)
    const [one, other] = await those()
    expect(codeOf(await mooring.call('POST', path, { body }))).toBe('403 quota_exceeded')
    expect((await mooring.call('DELETE', `${path}/${one?.id ?? ''}`)).status).toBe(200)
    await vi.waitFor(async () => {
      const now = (await those()).map(({ id }) => id)
      expect([now.length, now.includes(other?.id ?? '')]).toEqual([2, true])
    }, LATER)
  }
  expect((await list('/v1/instances')).instances).toHaveLength(4)
  expect((await list(TUNNELS)).tunnels).toHaveLength(4)
  const output = mooring.output()
  expect(output.match(/the namespace has 2 tunnels, and may have 2: delete one/g)).toHaveLength(3)
  expect(output.match(/the namespace has 2 instances, and may have 2: delete one/g)).toHaveLength(3)
})
