import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import { type ProcessId, sendSignal } from '../../../operator/server/process/spawn/proc.ts'
import { type Answer, codeOf, type Instance } from '../../support/api/answers.ts'
import { processOf, tenantsListed, tenantsOf } from '../../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { createStepTrap, type StepTrap } from '../../support/deployment/step-trap.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { LATER } from '../../support/patience.ts'

const SHORT_BUDGET = fileURLToPath(new URL('../../support/api/short-budget.ts', import.meta.url))
/** A start of a server after a crash takes seconds, and each test has up to three. */
const LONG = 120_000
/** Rows of a template whose copy takes some tenths of a second. */
const ROWS = 30_000

export interface Motors {
  readonly motor: Motor
  /** Motor of another family, whose server must not notice. */
  readonly neighbour: Motor
  /** Whether Mooring itself ends a server of the motor that hangs. */
  readonly endsHung?: boolean
}

/** Kills and stops the server of a motor during the steps of its instances. */
export function engineFaults({ motor, neighbour, endsHung = false }: Motors): void {
  const client = clientOf(motor)

  const started = new AsyncDisposableStack()
  let trap: StepTrap
  let mooring: Mooring
  let other: Instance

  async function start(dataDir?: string): Promise<void> {
    const { env, node } = trap.options
    const args = ['--compatible-motors', '--warm', motor, '--warm', neighbour]
    const options = { env, args, node: [...node, '--import', SHORT_BUDGET] }
    mooring = started.use(await startMooring(dataDir === undefined ? options : { ...options, dataDir }))
  }
  beforeAll(async () => {
    trap = started.use(await createStepTrap())
    await start()
    other = await created('other')
    await client.add(other, 'kept')
  })
  // A new Mooring restarts a server at once; one that has seen several crashes waits longer after each.
  beforeEach(async () => {
    const ended = once(mooring.process, 'exit')
    mooring.process.kill('SIGKILL')
    await ended
    await start(mooring.dataDir)
  })
  afterAll(() => started.disposeAsync())

  const post = (key: string, template?: Instance, of = motor): Promise<Answer> =>
    mooring.call('POST', '/v1/instances', {
      body: { identifier: key, region: mooring.ready.region, motor: of, ...(template && { template: template.id }) },
      headers: { 'Idempotency-Key': key },
    })

  /** Creates the instance, or returns it; repeats the request until it succeeds. */
  async function created(key: string, template?: Instance): Promise<Instance> {
    const answer = await vi.waitUntil(async () => {
      const answer = await post(key, template)
      expect(['201 OK', '503 unavailable', '409 conflict']).toContain(codeOf(answer))
      return answer.status === 201 && answer
    }, LATER)
    return answer.body.data.instance
  }

  const server = (): Promise<ProcessId> => vi.waitUntil(() => processOf(mooring.dataDir, motor), LATER)

  /** The server has exactly the tenants of the API, and the data of others. */
  async function expectWhole(): Promise<void> {
    await expect
      .poll(async () => isDeepStrictEqual(await tenantsOf(mooring.dataDir), await tenantsListed(mooring)), LATER)
      .toBe(true)
    await expect.poll(() => client.items(other).catch(String), LATER).toEqual(['kept'])
  }

  test.each(['claim.secret', 'claim.claim'])(
    'a server killed at %s restarts without help, and the claim finishes',
    async (step) => {
      await trap.arm({ step, pid: (await server()).pid })
      const instance = await created(step)
      expect(await trap.isSprung()).toBe(true)
      await expect.poll(() => client.user(instance).catch(String), LATER).toBe(instance.user)
      await expectWhole()
    },
  )

  test('a server killed during twenty claims: each is answered 201 or 503, and every 201 has its database', async () => {
    await trap.arm({ step: 'claim.verify', pid: (await server()).pid })
    const body = { region: mooring.ready.region, motor }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        mooring.call('POST', '/v1/instances', { body: { ...body, identifier: `crowd ${index}` } }),
      ),
    )
    expect(await trap.isSprung()).toBe(true)
    for (const answer of answers) expect(['201 OK', '503 unavailable']).toContain(codeOf(answer))
    // The databases of rejected claims are deleted some time later.
    await expectWhole()
    const { body: list } = await mooring.call('GET', '/v1/instances?limit=200')
    const answered = answers.filter(({ status }) => status === 201).map((answer) => answer.body.data.instance.id)
    expect(list.data.instances.map(({ id }) => id)).toEqual(expect.arrayContaining(answered))
    for (const id of answered) await mooring.call('DELETE', `/v1/instances/${id}`)
  })

  test.each([10, 150])(
    'a server killed %i ms into a copy: the copy finishes later and is whole',
    async (ms) => {
      const template = await created('template')
      if (ms === 10) await client.fill(template, ROWS)
      const answer = post(`copy-${ms}`, template)
      await delay(ms)
      await sendSignal(await server(), 'SIGKILL')
      expect(['201 OK', '503 unavailable']).toContain(codeOf(await answer))
      const copy = await created(`copy-${ms}`, template)
      await expect.poll(() => client.filled(copy).catch(String), LATER).toBe(ROWS)
      await expect.poll(() => client.filled(template).catch(String), LATER).toBe(ROWS)
      await expectWhole()
    },
    LONG,
  )

  test.each([0, 30])(
    'a server killed %i ms into a reset and into a deletion: both finish later',
    async (ms) => {
      const instance = await created(`reset-${ms}`)
      await client.fill(instance, ROWS)
      const path = `/v1/instances/${instance.id}`
      const reset = mooring.call('POST', `${path}/reset`)
      await delay(ms)
      await sendSignal(await server(), 'SIGKILL')
      expect([200, 202, 503]).toContain((await reset).status)
      await expect.poll(async () => (await created(`reset-${ms}`)).password, LATER).toBe(instance.password)
      await expect.poll(() => client.filled(instance).catch(() => 0), LATER).toBe(0)
      await expect.poll(() => client.items(instance).catch(String), LATER).toEqual([])

      const deletion = mooring.call('DELETE', path)
      await delay(ms)
      await sendSignal(await server(), 'SIGKILL')
      expect([200, 202, 503]).toContain((await deletion).status)
      await expect.poll(async () => (await mooring.call('GET', path)).status, LATER).toBe(404)
      await expectWhole()
    },
    LONG,
  )

  test(
    'while a server hangs, requests for it are answered in time, other families go on, and it comes back',
    async () => {
      const hung = await server()
      await sendSignal(hung, 'SIGSTOP')
      const path = `/v1/instances/${other.id}`
      const answers = await Promise.all([
        post('late'),
        mooring.call('POST', `${path}/password`),
        mooring.call('DELETE', `/v1/instances/${(await created('claim.secret')).id}`),
      ])
      for (const answer of answers) expect([202, 503]).toContain(answer.status)
      expect((await mooring.call('GET', path)).status).toBe(200)
      const near = await post('near', undefined, neighbour)
      expect(codeOf(near)).toBe('201 OK')
      expect(await clientOf(neighbour).user(near.body.data.instance)).toBe(near.body.data.instance.user)

      if (endsHung) await expect.poll(() => processOf(mooring.dataDir, motor), LATER).not.toMatchObject({ pid: hung.pid })
      else await sendSignal(hung, 'SIGCONT')
      const late = await created('late')
      await expect.poll(() => client.user(late).catch(String), LATER).toBe(late.user)
      other = await created('other')
      await expectWhole()
    },
    LONG,
  )
}
