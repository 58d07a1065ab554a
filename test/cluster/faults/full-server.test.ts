import { afterAll, beforeAll, expect, test } from 'vitest'
import { Errno, errnoOf } from '../../../operator/engines/mysql/errors.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { crowd } from '../../support/mysql/crowd.ts'
import { LATER } from '../../support/patience.ts'

/** More connections than a server of MySQL or MariaDB for 50 tenants has. */
const CROWD = 750

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

test.each(['mariadb-10.7.4', 'mysql-8.0.29'] as const)(
  'an instance of %s is created, rotated and deleted while connections without a login fill its server',
  async (motor) => {
    const client = clientOf(motor)
    const kept = await acme.instance({ motor })
    using held = new DisposableStack()
    held.use(crowd(kept, CROWD))
    const tryLogin = () => client.user(kept).then(() => undefined, errnoOf)
    await expect.poll(tryLogin, LATER).toBe(Errno.tooManyConnections)
    const { id } = await acme.instance({ motor })
    const rotated = await expectSuccess(acme.as('editor')('POST', `/v1/instances/${id}/password`))
    expect(rotated.body.data.instance.password).toMatch(/^\w{24}$/)
    await expectSuccess(acme.as('editor')('DELETE', `/v1/instances/${id}`))
  },
)
