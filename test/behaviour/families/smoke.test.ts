import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MOTORS } from '../../../crds/motor.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { attemptsOf } from '../../support/families/family-attempts.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'

/** What `npm test` checks of every motor. The other files of this folder check a motor whole. */

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

test('the region serves every motor', () => {
  expect([...deployment.installation.motors].toSorted()).toEqual([...MOTORS].toSorted())
})

/** All but PostgreSQL 15, which most other files use. */
const OTHERS = MOTORS.filter((motor) => motor !== 'postgresql-15.4.0')

describe.each(OTHERS)('a database of %s', (motor) => {
  const client = clientOf(motor)

  test('is created by POST, used with its credentials, and removed by DELETE', async () => {
    const instance = await acme.instance({ motor })
    expect(instance.motor).toBe(motor)
    expect(await client.user(instance)).toBe(instance.user)
    await client.add(instance, 'first')
    expect(await client.items(instance)).toEqual(['first'])
    await expectSuccess(acme.as('editor')('DELETE', `/v1/instances/${instance.id}`))
    await expect(client.items(instance)).rejects.toSatisfy((error) => client.isRefusal(error))
  })
})

test('a database of MongoDB gets a new password and is reset, and its neighbour cannot be reached from it', async () => {
  const motor = 'mongodb-5.0.9'
  const [client, attempts, send] = [clientOf(motor), attemptsOf(motor), acme.as('editor')]
  const [mallory, victim] = [await acme.instance({ motor }), await acme.instance({ motor })]
  await client.add(victim, 'kept')
  for (const statement of attempts.denied(victim).slice(0, 4))
    await expect(attempts.run(mallory, statement)).rejects.toSatisfy((error) => attempts.isDenial(error))

  const rotated = await expectSuccess(send('POST', `/v1/instances/${victim.id}/password`))
  await expect(client.items(victim)).rejects.toSatisfy((error) => client.isRefusal(error))
  const renewed = rotated.body.data.instance
  expect(await client.items(renewed)).toEqual(['kept'])
  await expectSuccess(send('POST', `/v1/instances/${victim.id}/reset`))
  expect(await client.items(renewed)).toEqual([])
})
