import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import type { Answer, Instance } from '../../support/api/answers.ts'
import { mainProcesses, tenantsListed, tenantsOf } from '../../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../../support/deployment/mortal-mooring.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { LATER } from '../../support/patience.ts'
import { onlyInFull } from '../../support/scope.ts'

/** Kills Mooring (SIGKILL) at each step of an instance of the motor, and starts it again. */
export function killAtEachStep(motor: Motor): void {
  const client = clientOf(motor)

  /** Mooring with one data directory for all crashes, so that each start also has the leftovers of earlier crashes. */
  let mooring: MortalMooring
  beforeAll(async () => {
    mooring = await startMortal({ args: ['--compatible-motors', '--warm', motor] })
  })
  afterAll(() => mooring[Symbol.asyncDispose]())

  const create = (key: string, template?: Instance): Promise<Answer> =>
    mooring.call('POST', '/v1/instances', {
      body: { identifier: key, region: mooring.living().ready.region, motor, ...(template && { template: template.id }) },
      headers: { 'Idempotency-Key': key },
    })

  async function expectOneOfEach(): Promise<void> {
    expect(await tenantsOf(mooring.dataDir)).toEqual(await tenantsListed(mooring.living()))
    expect(await mainProcesses(mooring.dataDir)).toHaveLength(1)
  }

  async function expectRefused(instance: Instance): Promise<void> {
    const login = await client.user(instance).catch((error: unknown) => ({ isRefused: client.isRefusal(error) }))
    expect(login).toEqual({ isRefused: true })
  }

  test.each(['claim.claim', ...onlyInFull('claim.secret', 'claim.verify', 'claim.status')])(
    'a repeated request gets the one database with a working password after kill -9 at %s',
    async (step) => {
      const before = await mooring.dieAt(step, () => create(step))
      const first = await create(step)
      expect(first.status).toBe(201)
      const { instance } = first.body.data
      expect(await client.user(instance)).toBe(instance.user)
      expect((await create(step)).body.data.instance).toEqual(instance)
      if (before) expect(before.body.data.instance).toEqual(instance)
      await expectOneOfEach()
    },
  )

  test.each(['claim.secret', ...onlyInFull('claim.claim')])(
    'a repeated request gets one copy of the template after kill -9 at %s',
    async (step) => {
      const { instance: template } = (await create('template')).body.data
      if ((await client.items(template)).length === 0) await client.add(template, 'copied')
      await mooring.dieAt(step, () => create(`copy.${step}`, template))
      const copied = await create(`copy.${step}`, template)
      expect(copied.status).toBe(201)
      expect(await client.items(copied.body.data.instance)).toEqual(['copied'])
      await expectOneOfEach()
    },
  )

  test.each(['reset.reset', ...onlyInFull('reset.verify', 'reset.status')])(
    'a reset finishes without help and keeps the credentials after kill -9 at %s',
    async (step) => {
      const { instance } = (await create(step)).body.data
      await client.add(instance, 'row')
      await mooring.dieAt(step, () => mooring.call('POST', `/v1/instances/${instance.id}/reset`))
      // The repeated creation is answered when the instance is ready again.
      expect((await create(step)).body.data.instance).toMatchObject({ id: instance.id, password: instance.password })
      expect(await client.items(instance)).toEqual([])
      await expectOneOfEach()
    },
  )

  test.each(['change.password', ...onlyInFull('change.renew-secret', 'change.verify')])(
    'the next answer of a rotation has the working password after kill -9 at %s',
    async (step) => {
      const { instance: old } = (await create(step)).body.data
      await mooring.dieAt(step, () => mooring.call('POST', `/v1/instances/${old.id}/password`))
      const { instance } = (await create(step)).body.data
      expect(instance.id).toBe(old.id)
      expect(instance.password).not.toBe(old.password)
      expect(await client.user(instance)).toBe(instance.user)
      await expectRefused(old)
      await expectOneOfEach()
    },
  )

  test.each(['change.disable', ...onlyInFull('change.enable')])(
    'the requested isEnabled takes effect after kill -9 at %s',
    async (step) => {
      const { instance } = (await create(step)).body.data
      const isEnabled = step === 'change.enable'
      const path = `/v1/instances/${instance.id}`
      if (isEnabled) await mooring.call('PATCH', path, { body: { isEnabled: false } })
      await mooring.dieAt(step, () => mooring.call('PATCH', path, { body: { isEnabled } }))
      await expect.poll(async () => (await mooring.call('GET', path)).body.data.instance.isEnabled, LATER).toBe(isEnabled)
      if (isEnabled) expect(await client.user(instance)).toBe(instance.user)
      else await expectRefused(instance)
      await mooring.call('DELETE', path)
      await expectOneOfEach()
    },
  )

  test.each(['delete.drop', 'delete.release', ...onlyInFull('delete.forget-secret')])(
    'a deletion finishes without help and frees its key after kill -9 at %s',
    async (step) => {
      const { instance } = (await create(step)).body.data
      await mooring.dieAt(step, () => mooring.call('DELETE', `/v1/instances/${instance.id}`))
      await expect.poll(async () => (await mooring.call('GET', `/v1/instances/${instance.id}`)).status, LATER).toBe(404)
      await expectRefused(instance)
      await expectOneOfEach()
      expect((await create(step)).body.data.instance.id).not.toBe(instance.id)
      await expectOneOfEach()
    },
  )
}
