import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, codeOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import type { Call } from '../support/api/answers.ts'
import type { Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

/** Sends the same call repeatedly and concurrently until the rate limit rejects one. */
async function untilLimited(send: () => Promise<Answer>): Promise<Answer> {
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 60 }, send))
    const limited = answers.find(({ status }) => status === 429)
    if (limited) return limited
  }
  throw new Error('the rate limit rejected none of 1,200 calls')
}

const COSTS = [
  { what: 'writes', burst: '40', send: (call: Call) => call('POST', '/v1/instances', { body: {} }) },
  { what: 'reads', burst: '200', send: (call: Call) => call('GET', '/v1/me') },
] as const

test.each(COSTS)('too many $what are 429 for their caller and for no other caller', async ({ burst, send }) => {
  const greedy = acme.as('editor')
  const first = await send(greedy)
  expect(first.headers['ratelimit-limit']).toBe(burst)
  expect(Number(first.headers['ratelimit-remaining'])).toBeLessThan(Number(burst))
  expect(first.headers['ratelimit-reset']).toMatch(/^\d+$/)
  const limited = await untilLimited(() => send(greedy))
  expect(codeOf(limited)).toBe('429 rate_limited')
  expect(Number(limited.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect(limited.headers['ratelimit-remaining']).toBe('0')
  expect((await send(acme.as('editor'))).status).not.toBe(429)
})

test('a caller past the rate limit for writes may still read', async () => {
  const [writes] = COSTS
  const greedy = acme.as('editor')
  await untilLimited(() => writes.send(greedy))
  expect((await greedy('GET', '/v1/me')).status).toBe(200)
})
