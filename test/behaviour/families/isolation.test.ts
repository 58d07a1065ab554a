import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Instance } from '../../support/api/answers.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { attemptsOf } from '../../support/families/family-attempts.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { type FamilySession, openSession } from '../../support/families/family-session.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'

// test/servers tries each hole of each family; these tests check that two instances from the API are kept apart.

const deployment = openDeployment()
afterAll(() => deployment[Symbol.asyncDispose]())

describe.each(motorsUnderTest())('a tenant of %s', (motor) => {
  const client = clientOf(motor)
  const { run, denied, isDenial, listings } = attemptsOf(motor)
  let mallory: Instance
  let victim: Instance
  let session: FamilySession
  beforeAll(async () => {
    victim = await (await deployment.namespace()).instance({ motor, identifier: 'victim' })
    mallory = await (await deployment.namespace()).instance({ motor, identifier: 'mallory' })
    await client.add(victim, 'secret')
    await client.add(mallory, 'own')
    session = await openSession(victim)
  })
  afterAll(() => session[Symbol.asyncDispose]())

  test('cannot log in as another tenant or to the database of another tenant', async () => {
    const refused: readonly Instance[] = [
      { ...victim, password: mallory.password },
      { ...mallory, name: victim.name },
      { ...mallory, password: 'x' },
      { ...mallory, user: 'mooring' },
      { ...mallory, user: 'root' },
    ]
    for (const each of refused) await expect(client.items(each)).rejects.toSatisfy((error) => client.isRefusal(error))
  })

  test('is denied what would reach another tenant or the server', async () => {
    for (const statement of denied(victim)) {
      const error = await run(mallory, statement).catch((thrown: unknown) => thrown)
      expect([statement, error, isDenial(error)]).toEqual([statement, expect.anything(), true])
    }
  })

  test('finds no other tenant in what it may list', async () => {
    await session.ping()
    for (const statement of listings) {
      const listed = JSON.stringify(await run(mallory, statement))
      expect([statement, listed]).toEqual([statement, expect.not.stringContaining(victim.name)])
    }
  })

  test('that opens forty sessions keeps no other tenant out', async () => {
    await using opened = new AsyncDisposableStack()
    const tried = await Promise.allSettled(Array.from({ length: 40 }, () => openSession(mallory)))
    for (const each of tried) if (each.status === 'fulfilled') opened.use(each.value)
    expect(tried.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(10)
    expect(await client.items(victim)).toEqual(['secret'])
    const another = await (await deployment.namespace()).instance({ motor })
    expect(await client.items(another)).toEqual([])
  })

  test('changed nothing of the other by all this', async () => {
    await session.ping()
    expect(await client.items(victim)).toEqual(['secret'])
  })
})
