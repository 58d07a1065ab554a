import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { MOTORS } from '../../../crds/motor.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import { codeOf } from '../../support/api/answers.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { mysqlRows } from '../../support/families/family-content.ts'
import { clientsOf } from '../setup/commands.ts'
import { mainProcess } from './node-processes.ts'
import { LATER } from '../../support/patience.ts'

const cluster = clientsOf(process.env.KUBECONFIG ?? '')
const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const Pods = z.object({
  items: z.array(z.object({ status: z.object({ containerStatuses: z.tuple([z.object({ containerID: z.string() })]) }) })),
})

/** Object name of a motor's first server. */
const serverOf = (motor: string): string => `${motor.replaceAll('.', '-')}-r1-1`

/** Sends a signal to the server of a motor, which has one. */
async function signalServer(motor: string, signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
  const selector = `mooring.dev/server=${serverOf(motor)}`
  const pods = ['get', 'pods', '--namespace', SHARED_NAMESPACE, '--selector', selector, '--output', 'json']
  const [pod] = Pods.parse(JSON.parse(await cluster.kubectl(pods))).items
  process.kill(await mainProcess(pod?.status.containerStatuses[0].containerID ?? ''), signal)
}

// Each server is shared with all other tests of its motor, so these run when no other test does.
test.each(MOTORS)('a database of %s has its data after its server was killed, and after its pod was deleted', async (motor) => {
  const client = clientOf(motor)
  const instance = await acme.instance({ motor })
  await client.add(instance, 'kept')
  const items = () => client.items(instance).catch((error: unknown) => error)
  await signalServer(motor, 'SIGKILL')
  await expect.poll(items, LATER).toEqual(['kept'])
  await cluster.kubectl(['delete', 'pod', '--namespace', SHARED_NAMESPACE, `${serverOf(motor)}-0`])
  await expect.poll(items, LATER).toEqual(['kept'])
  await expectSuccess(acme.as('editor')('POST', `/v1/instances/${instance.id}/reset`))
  expect(await items()).toEqual([])
})

test('a reset of a mysql-8.0.29 database succeeds after a crash left only its directory', async () => {
  const motor = 'mysql-8.0.29'
  const instance = await acme.instance({ motor })
  // What a kill of the server leaves between the two steps of DROP DATABASE.
  await mysqlRows(instance, `DROP DATABASE ${instance.name}`)
  const make = ['mkdir', `/var/lib/mysql/data/${instance.name}`]
  await cluster.kubectl(['exec', '--namespace', SHARED_NAMESPACE, `${serverOf(motor)}-0`, '--', ...make])
  const reset = () => acme.as('editor')('POST', `/v1/instances/${instance.id}/reset`).then(codeOf)
  await expect.poll(reset, { timeout: 120_000, interval: 1_000 }).toBe('200 OK')
  expect(await clientOf(motor).items(instance)).toEqual([])
})

test.each(['mariadb-10.7.4', 'mongodb-7.0.2'])(
  'a database of %s answers again after its server hung with an open port',
  { timeout: 360_000 },
  async (motor) => {
    const client = clientOf(motor)
    const instance = await acme.instance({ motor })
    await client.add(instance, 'kept')
    await signalServer(motor, 'SIGSTOP')
    const items = () => Promise.race([client.items(instance).catch((error: unknown) => error), delay(10_000, 'no answer')])
    await expect.poll(items, LATER).toEqual(['kept'])
  },
)
