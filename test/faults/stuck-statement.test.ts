import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, codeOf, type Instance } from '../support/api/answers.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { metricOf } from '../support/deployment/metric.ts'
import { lockItself, loop } from '../support/postgresql/stuck.ts'
import { login, query } from '../support/postgresql/sql.ts'
import { inTime } from '../support/in-time.ts'
import { SOON } from '../support/patience.ts'

let mooring: Mooring
beforeAll(async () => {
  mooring = await startMooring({ args: ['--quota-instances', '3'] })
})
afterAll(() => mooring[Symbol.asyncDispose]())

function post(identifier: string): Promise<Answer> {
  const body = { identifier, region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  return mooring.call('POST', '/v1/instances', { body })
}

async function create(identifier: string): Promise<Instance> {
  const answer = await post(identifier)
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.instance
}

const at = ({ id }: Instance) => `/v1/instances/${id}`

test('a statement that nothing ends, with locks on its own role, delays no DELETE and no PATCH, and the discarded databases count against the quota until the server removed them', async () => {
  const [looping, leaving, staying] = [await create('looping'), await create('leaving'), await create('staying')]
  const client = await login(looping)
  await lockItself(client, looping.user)
  await loop(client)

  expect(codeOf(await inTime(mooring.call('DELETE', at(leaving))))).toBe('200 OK')
  expect(codeOf(await mooring.call('GET', at(leaving)))).toBe('404 not_found')
  expect(codeOf(await mooring.call('DELETE', at(leaving)))).toBe('404 not_found')
  await expect(login(leaving)).rejects.toMatchObject({ code: '28P01' })
  await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), SOON).toBe(1)
  expect(codeOf(await post('another'))).toBe('403 quota_exceeded')
  const disable = mooring.call('PATCH', at(looping), { body: { isEnabled: false } })
  const [reset, disabled] = await inTime(Promise.all([mooring.call('POST', `${at(staying)}/reset`), disable]))
  expect([codeOf(reset), codeOf(disabled)]).toEqual(['200 OK', '200 OK'])
  expect(await query(staying, 'SELECT 1 AS one')).toEqual([{ one: 1 }])

  // The server lacks the library that the settings of the database name.
  await expect(login(looping)).rejects.toMatchObject({ code: '58P01' })
  expect(codeOf(await inTime(mooring.call('DELETE', at(looping))))).toBe('200 OK')
  await expect(login(looping)).rejects.toMatchObject({ code: '58P01' })
  expect(codeOf(await mooring.call('GET', at(looping)))).toBe('404 not_found')
  await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), SOON).toBe(3)
  await client.end()
})
