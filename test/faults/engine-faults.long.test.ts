import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Answer, codeOf } from '../support/api/answers.ts'
import { mainProcesses, tenantsListed, tenantsOf } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { createStepTrap, type StepTrap } from '../support/deployment/step-trap.ts'
import { SOON } from '../support/patience.ts'

let trap: StepTrap
let mooring: Mooring
beforeAll(async () => {
  trap = await createStepTrap()
  mooring = await startMooring({ ...trap.options, args: ['--compatible-motors'] })
})
afterAll(async () => {
  await mooring[Symbol.asyncDispose]()
  await trap[Symbol.asyncDispose]()
})

/** Arms the trap to kill the engine, as soon as one runs. Without a process id the trap would kill Mooring. */
const armAgainstEngine = async (step: string): Promise<void> => {
  const [engine] = await vi.waitUntil(async () => {
    const engines = await mainProcesses(mooring.dataDir)
    return engines.length === 1 && engines
  }, SOON)
  if (engine === undefined) throw new Error('there is no engine to kill')
  await trap.arm({ step, pid: engine.pid })
}

const agree = async () => isDeepStrictEqual(await tenantsOf(mooring.dataDir), await tenantsListed(mooring))

const create = (identifier: string, motor = 'postgresql-15.4.0'): Promise<Answer> =>
  mooring.call('POST', '/v1/instances', { body: { identifier, region: mooring.ready.region, motor } })

test.each(['claim.secret', 'claim.claim'])(
  'an engine killed at %s restarts without help, and the claim finishes on it',
  async (step) => {
    const { instance: other } = (await create('other')).body.data
    await armAgainstEngine(step)
    const answer = await create('victim')
    expect(await trap.isSprung()).toBe(true)
    expect(codeOf(answer)).toBe('201 OK')
    const { instance } = answer.body.data
    // A backend may outlive the killed engine for as long as it takes to verify the claim: then the answer comes before the next engine.
    for (const each of [instance, other]) await expect.poll(() => query(each, 'SELECT 1 AS one'), SOON).toEqual([{ one: 1 }])
    await expect.poll(agree, SOON).toBe(true)
    expect(await mainProcesses(mooring.dataDir)).toHaveLength(1)
  },
)

test('an engine killed during twenty claims: each is answered 201 or 503, and every 201 has its database', async () => {
  await armAgainstEngine('claim.verify')
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => create(`crowd ${index}`)))
  expect(await trap.isSprung()).toBe(true)
  for (const answer of answers) expect(['201 OK', '503 unavailable']).toContain(codeOf(answer))
  // The databases of rejected claims are deleted some time later.
  await expect.poll(agree, SOON).toBe(true)
  const { body } = await mooring.call('GET', '/v1/instances?limit=200')
  const answered = answers.filter(({ status }) => status === 201).map((answer) => answer.body.data.instance.id)
  expect(body.data.instances.map(({ id }) => id)).toEqual(expect.arrayContaining(answered))
  expect(codeOf(await create('afterwards'))).toBe('201 OK')
})

test('the first request for a motor starts its server', async () => {
  const answer = await create('cold', 'postgresql-14.4.0')
  expect(codeOf(answer)).toBe('201 OK')
  const { instance } = answer.body.data
  expect(instance).toMatchObject({ motor: 'postgresql-14.4.0', engineVersion: '14.5' })
  expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  expect(await mainProcesses(mooring.dataDir)).toHaveLength(2)
})
