import { expect, test } from 'vitest'
import { type Motor, partsOf } from '../../crds/motor.ts'
import { type Answer, codeOf, type Instance } from '../support/api/answers.ts'
import { metricOf } from '../support/deployment/metric.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { clientOf, openMongodb, openMysql } from '../support/families/family-client.ts'
import { inTime } from '../support/in-time.ts'
import { startStubborn } from '../support/mongodb/stubborn.ts'
import { STUBBORN } from '../support/mysql/stubborn.ts'
import { LATER, SOON } from '../support/patience.ts'

/** Starts a statement that nothing ends, with a lock in the database. Returns a function that closes its connection. */
async function loop(motor: Motor, instance: Instance): Promise<() => unknown> {
  if (partsOf(motor).family === 'mongodb') {
    const client = await openMongodb(instance)
    await startStubborn(client, instance.name, 'update')
    return () => client.close()
  }
  const session = await openMysql(instance)
  await session.query('CREATE TABLE t (n INT)')
  await session.query('INSERT INTO t VALUES (1)')
  session.query(`${STUBBORN} FROM t`).catch(() => undefined)
  return () => session.destroy()
}

async function start(motor: Motor, args: readonly string[]) {
  const mooring = await startMooring({ args: ['--compatible-motors', ...args] })
  const post = (identifier: string): Promise<Answer> =>
    mooring.call('POST', '/v1/instances', { body: { identifier, region: mooring.ready.region, motor } })
  const create = async (identifier: string): Promise<Instance> => {
    const answer = await post(identifier)
    expect(codeOf(answer)).toBe('201 OK')
    return answer.body.data.instance
  }
  return { mooring, post, create, [Symbol.asyncDispose]: () => mooring[Symbol.asyncDispose]() }
}

const at = ({ id }: Instance) => `/v1/instances/${id}`
const restarts = 'mooring_database_server_forced_restarts_total'

test.each(['mariadb-10.7.4', 'mysql-5.7.38', 'mysql-8.0.29', 'mongodb-5.0.9', 'mongodb-7.0.2'] as const)(
  'on %s, a statement that nothing ends delays neither a rotation nor the DELETE of its tenant, nor that of a neighbour',
  async (motor) => {
    await using running = await start(motor, ['--quota-instances', '2', '--statement-limit-seconds', '30'])
    const { mooring, post, create } = running
    const client = clientOf(motor)
    const [looping, neighbour] = [await create('looping'), await create('neighbour')]
    const close = await loop(motor, looping)

    const rotated = await inTime(mooring.call('POST', `${at(looping)}/password`))
    expect(codeOf(rotated)).toBe('200 OK')
    expect(codeOf(await inTime(mooring.call('DELETE', at(neighbour))))).toBe('200 OK')
    expect(codeOf(await inTime(mooring.call('DELETE', at(looping))))).toBe('200 OK')
    expect(codeOf(await mooring.call('GET', at(looping)))).toBe('404 not_found')
    const refused = await client.user({ ...looping, ...rotated.body.data.instance }).catch((error: unknown) => error)
    expect(client.isRefusal(refused)).toBe(true)
    await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), SOON).toBe(1)
    await create('other')
    expect(codeOf(await post('another'))).toBe('403 quota_exceeded')

    // Past the bound of statements the server is restarted, and the data are removed.
    await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), LATER).toBe(0)
    expect(await metricOf(mooring, restarts)).toBe(1)
    await close()
  },
  600_000,
)

test.each(['mongodb-5.0.9', 'mongodb-7.0.2'] as const)(
  'on %s, a reset of a database that a statement keeps locked has the server restarted at once, and succeeds',
  async (motor) => {
    await using running = await start(motor, [])
    const { mooring, create } = running
    const client = clientOf(motor)
    const [looping, neighbour] = [await create('looping'), await create('neighbour')]
    await client.add(neighbour, 'kept')
    const close = await loop(motor, looping)
    // A disabling of its own does not wait, either.
    expect(codeOf(await inTime(mooring.call('PATCH', at(looping), { body: { isEnabled: false } })))).toBe('200 OK')
    expect(codeOf(await inTime(mooring.call('PATCH', at(looping), { body: { isEnabled: true } })))).toBe('200 OK')
    expect(codeOf(await mooring.call('POST', `${at(looping)}/reset`))).toBe('200 OK')
    expect(await metricOf(mooring, restarts)).toBe(1)
    expect(await client.items(looping)).toEqual([])
    await expect.poll(() => client.items(neighbour).catch(() => []), LATER).toEqual(['kept'])
    await close()
  },
  600_000,
)
