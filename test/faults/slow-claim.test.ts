import { isDeepStrictEqual } from 'node:util'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendSignal } from '../../operator/server/process/spawn/proc.ts'
import { type Answer, codeOf } from '../support/api/answers.ts'
import { mainProcesses, tenantsListed, tenantsOf } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

const SHORT_BUDGET = fileURLToPath(new URL('../support/api/short-budget.ts', import.meta.url))

let mooring: Mooring
beforeAll(async () => {
  mooring = await startMooring({ node: ['--import', SHORT_BUDGET] })
})
afterAll(() => mooring[Symbol.asyncDispose]())

function post(identifier: string, headers: Record<string, string> = {}): Promise<Answer> {
  const body = { identifier, region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  return mooring.call('POST', '/v1/instances', { body, headers })
}

/** Suspends the engine during `work`. */
async function whileFrozen<T>(work: () => Promise<T>): Promise<T> {
  const engines = await mainProcesses(mooring.dataDir)
  const all = (signal: NodeJS.Signals) => Promise.all(engines.map((engine) => sendSignal(engine, signal)))
  await all('SIGSTOP')
  try {
    return await work()
  } finally {
    await all('SIGCONT')
  }
}

const listed = async () => (await mooring.call('GET', '/v1/instances')).body.data.instances
const agree = async () => isDeepStrictEqual(await tenantsOf(mooring.dataDir), await tenantsListed(mooring))

test('a POST that times out is 503 and leaves nothing behind', async () => {
  const answer = await whileFrozen(() => post('late'))
  expect(codeOf(answer)).toBe('503 unavailable')
  expect(answer.headers['retry-after']).toMatch(/^\d+$/)
  await expect.poll(listed, LATER).toEqual([])
  await expect.poll(agree, LATER).toBe(true)
})

test('a POST with an Idempotency-Key continues after its timeout, and the repeated request gets its result', async () => {
  const key = { 'Idempotency-Key': 'slow-1' }
  expect(codeOf(await whileFrozen(() => post('patient', key)))).toBe('503 unavailable')
  await expect.poll(async () => (await listed()).map(({ isEnabled }) => isEnabled), LATER).toEqual([true])
  const joined = await post('patient', key)
  expect(codeOf(joined)).toBe('201 OK')
  const { instance } = joined.body.data
  expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  expect((await post('patient', key)).body).toEqual(joined.body)
  expect(await listed()).toHaveLength(1)
  expect(await agree()).toBe(true)
})
