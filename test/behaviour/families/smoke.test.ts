import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MOTORS } from '../../../crds/motor.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
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

describe.each(MOTORS)('a database of %s', (motor) => {
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
