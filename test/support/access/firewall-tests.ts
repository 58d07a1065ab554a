import { expect, test } from 'vitest'
import { expectRefused, type RestrictedServer, TENANT } from './restricted-server.ts'

/** Registers the tests of a firewall that all families pass, on a server that listens on 127.0.0.1. */
export function testFirewall(server: RestrictedServer): void {
  test('a server without rules admits every source', async () => {
    await server.restrict({})
    await server.from('127.0.0.1')
    await server.from('127.0.0.2')
  })

  test('a rule admits its range alone, also on loopback', async () => {
    await server.restrict({ sources: ['127.0.0.2/31', '203.0.113.0/24'] })
    await server.from('127.0.0.2')
    await server.from('127.0.0.3')
    await expectRefused(server, '127.0.0.1')
    await expectRefused(server, '127.0.0.4')
  })

  test('a change ends the sessions that are not admitted any more, and no others', async () => {
    await server.restrict({ sources: ['127.0.0.1', '127.0.0.2'] })
    const [stays, leaves] = [await server.from('127.0.0.1'), await server.from('127.0.0.2')]
    await server.restrict({ sources: ['127.0.0.1'] })
    await expect(leaves.run(server.harmless)).rejects.toThrow()
    await stays.run(server.harmless)
    await expectRefused(server, '127.0.0.2')
  })

  test('an empty list rejects every tenant and never the administrator', async () => {
    await server.restrict({ sources: [] })
    await expectRefused(server, '127.0.0.1')
    await expectRefused(server, '127.0.0.2')
    expect(await server.admin.version()).toMatch(/^\d/)
    await server.admin.admit([])
  })

  test('the operator verifies a login although its own address is not admitted', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    await server.admin.verify(TENANT)
    await expect(server.admin.verify({ ...TENANT, password: 'another' })).rejects.toMatchObject({ code: 'login_refused' })
  })

  test('a tenant that is claimed later is restricted, too', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    const later = { name: 'later', password: 'password-of-later' }
    await server.admin.claim(later, { connections: 12 }, {})
    await server.admin.admit(['127.0.0.2'])
    await expect(server.from('127.0.0.1', later)).rejects.toThrow()
    await server.from('127.0.0.2', later)
    await server.admin.drop('later')
  })

  test('a private server admits clients of its machine', async () => {
    await server.restrict({ isPrivate: true, sources: [] })
    expect(server.state.host).toBe('127.0.0.1')
    await server.from('127.0.0.1')
  })

  test('what the rules need on the server is no tenant', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    const { tenants, leftovers } = await server.admin.catalog()
    expect([...tenants.keys()]).toEqual(['tenant'])
    expect(leftovers).toEqual([])
    const sizes = await server.admin.sizes('all')
    expect([...sizes.keys()].filter((name) => name !== 'tenant')).toEqual([])
    await server.admin.enforce({ statementMs: 60_000, idleTransactionMs: 60_000, sizeBytes: 1_000_000_000 })
    expect(await server.admin.tidy(0)).toBe(false)
  })

  test('rules outlast a restart of the server', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    await server.restart()
    await expectRefused(server, '127.0.0.1')
    await server.from('127.0.0.2')
  })

  test('a repeated claim after a restart of the operator keeps the rules', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    await server.restart()
    await server.admin.claim(TENANT, { connections: 12 }, {})
    await expectRefused(server, '127.0.0.1')
    await server.restrict({})
    await server.admin.claim(TENANT, { connections: 12 }, {})
    await server.restrict({})
    await server.from('127.0.0.1')
  })
}

/** Registers the same for a server that listens on ::1. */
export function testFirewallOfIpv6(server: RestrictedServer): void {
  test.each([
    { sources: ['::1'], result: 'admits' },
    { sources: ['::/64'], result: 'admits' },
    { sources: ['::1:0:0/96', '127.0.0.1'], result: 'rejects' },
    { sources: ['0.0.0.0/0'], result: 'rejects' },
    { sources: [], result: 'rejects' },
  ])('the list $sources $result the client ::1', async ({ sources, result }) => {
    await server.restrict({ sources })
    if (result === 'admits') await server.from('::1')
    else await expectRefused(server, '::1')
  })
}
