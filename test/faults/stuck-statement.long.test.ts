import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeOf, type Instance } from '../support/api/answers.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { metricOf } from '../support/deployment/metric.ts'
import { loop } from '../support/postgresql/stuck.ts'
import { login, query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

let mooring: Mooring
beforeAll(async () => {
  mooring = await startMooring({ args: ['--statement-limit-seconds', '1'] })
})
afterAll(() => mooring[Symbol.asyncDispose]())

async function create(identifier: string): Promise<Instance> {
  const body = { identifier, region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.instance
}

/** Loops in a new session, and deletes a neighbour, which the server cannot remove then. */
async function blockRemoval(looping: Instance, neighbour: string): Promise<void> {
  const leaving = await create(neighbour)
  await loop(await login(looping))
  expect(codeOf(await mooring.call('DELETE', `/v1/instances/${leaving.id}`))).toBe('200 OK')
  await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), LATER).toBe(1)
}

test('a server is restarted for a statement that nothing ends, once in ten minutes, and removes the discarded database then', async () => {
  const [looping, staying] = [await create('looping'), await create('staying')]
  await query(staying, 'CREATE TABLE kept AS SELECT 1 AS n')
  await blockRemoval(looping, 'first')
  await expect.poll(() => metricOf(mooring, 'mooring_database_server_forced_restarts_total'), LATER).toBe(1)
  await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), LATER).toBe(0)
  await expect.poll(() => query(staying, 'SELECT n FROM kept').catch(() => []), LATER).toEqual([{ n: 1 }])
  expect(mooring.output()).toContain('database server restarted because of a statement that cannot be ended')

  // Its tenant is suspended for a minute.
  const { body } = await mooring.call('GET', `/v1/instances/${looping.id}`)
  expect(body.data.instance.isEnabled).toBe(false)
  await expect(login(looping)).rejects.toThrow()
  expect(mooring.output()).toMatch(/Suspended.*no logins until/)
  await expect.poll(() => query(looping, 'SELECT 1 AS one').catch(() => []), LATER).toEqual([{ one: 1 }])
  await blockRemoval(looping, 'second')
  await expect.poll(() => login(looping).catch((error: unknown) => error), LATER).toMatchObject({ code: '28P01' })
  expect(await metricOf(mooring, 'mooring_database_server_forced_restarts_total')).toBe(1)
}, 600_000)
