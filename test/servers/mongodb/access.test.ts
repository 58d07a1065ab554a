import { describe, expect, test } from 'vitest'
import { testFirewall, testFirewallOfIpv6 } from '../../support/access/firewall-tests.ts'
import { expectRefused, restrictedServer } from '../../support/access/restricted-server.ts'

const MOTORS = ['mongodb-5.0.9', 'mongodb-7.0.2'] as const

/** Commands by which a tenant tries to let other sources in. */
const ATTEMPTS = [
  { updateUser: 'tenant', authenticationRestrictions: [] },
  { updateUser: 'tenant', customData: {} },
  { createUser: 'other', pwd: 'other', roles: [] },
  { grantRolesToUser: 'tenant', roles: ['dbOwner'] },
  { dropUser: 'tenant' },
]

describe.each(MOTORS)('%s on 127.0.0.1', (motor) => {
  const server = restrictedServer(motor)
  testFirewall(server)

  test('a tenant cannot change the rules', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    const session = await server.from('127.0.0.2')
    for (const attempt of ATTEMPTS) {
      const text = JSON.stringify(attempt)
      await expect(session.run(text), text).rejects.toThrow()
    }
    await expectRefused(server, '127.0.0.1')
    await server.from('127.0.0.2')
  })

  test('a login that is enabled again stays restricted', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    await server.admin.disableLogin('tenant')
    await expectRefused(server, '127.0.0.2')
    await server.admin.enableLogin('tenant')
    await server.from('127.0.0.2')
    await expectRefused(server, '127.0.0.1')
  })
})

describe.each(MOTORS)('%s on ::1', (motor) => {
  testFirewallOfIpv6(restrictedServer(motor, '::1'))
})
