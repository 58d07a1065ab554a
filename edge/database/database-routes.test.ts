import { describe, expect, test } from 'vitest'
import { DedicatedDatabase, RULES_VERSION } from '../../crds/dedicated-database.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import { dedicatedDatabase } from '../../test/builders/dedicated.ts'
import { tunnel, tunnelPassword } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createRoutes, routedPasswordIndexes } from '../routes.ts'

const HOSTNAME = '0123456789abcdef'
const SERVER = { host: '10.0.0.7', port: 5432 }
const sshTunnel = { hostname: HOSTNAME, endpointRef: { name: 'mine' }, host: 'ssh.test', port: 22_222, server: SERVER }
const settings = { authMode: 'both', authorizedKeys: [] } as const
const shop = (traits: Parameters<typeof dedicatedDatabase>[0] = {}) =>
  dedicatedDatabase({
    ...traits,
    spec: { motor: 'postgresql-15.4.0', sshTunnel: settings, ...traits.spec },
    status: { sshTunnel, ...traits.status },
  })
const SHA256 = 'b'.repeat(64)

interface Given {
  readonly databases: readonly DedicatedDatabase[]
  readonly tunnels?: readonly Tunnel[]
  readonly passwords?: readonly TunnelPassword[]
}

/** Routes of the endpoint `mine` over these objects. */
function routesOf(given: Given) {
  const tunnels = settableCache(Tunnel)
  const databases = settableCache(DedicatedDatabase)
  const passwords = settableCache(TunnelPassword, routedPasswordIndexes)
  tunnels.put(...(given.tunnels ?? []))
  databases.put(...given.databases)
  passwords.put(...(given.passwords ?? []))
  const onError = (error: unknown) => expect.fail(String(error))
  const caches = { tunnels: tunnels.cache, databases: databases.cache, passwords: passwords.cache }
  return createRoutes({ endpoint: 'mine', domain: 'tunnel.test', ...caches, onError, date: () => Date.now() })
}

const passwordOf = (name: string, sha256 = SHA256, more: object = {}) =>
  tunnelPassword({
    metadata: { name, namespace: 'acme--prod', creationTimestamp: new Date().toISOString() },
    spec: { tunnelRef: undefined, databaseRef: { name: shop().metadata.name }, sha256, ...more },
  })

describe('a database', () => {
  test('with an SSH tunnel has a route for logins at its endpoint, and none for visitors', () => {
    using routes = routesOf({ databases: [shop()] })
    expect(routes.get(HOSTNAME)).toMatchObject({
      ...{ id: shop().metadata.uid, name: shop().metadata.name, config: { ...settings, sshIPWhitelist: [] } },
      database: { port: 5432, server: SERVER },
    })
    expect(routes.tunnels.get(HOSTNAME)).toBeUndefined()
    expect([...routes.tunnels.hostnames()]).toEqual([])
  })

  test.each([
    { name: 'without rules', spec: {}, allows: [true, true] },
    { name: 'with an empty list', spec: { firewallRules: [] }, allows: [false, false] },
    { name: 'with a rule', spec: { firewallRules: [{ cidr: '192.0.2.0/24' }] }, allows: [true, false] },
    {
      name: 'with a rule in a private network',
      spec: { firewallRules: [{ cidr: '192.0.2.0/24' }], privateNetwork: true },
      allows: [true, false],
    },
    { name: 'with the empty list of a former version', spec: { firewallRules: [] }, former: true, allows: [true, true] },
  ])('$name takes logins from these addresses', ({ spec, allows, former = false }) => {
    const status = { phase: 'running' as const, rulesVersion: former ? undefined : RULES_VERSION }
    using routes = routesOf({ databases: [shop({ spec, status })] })
    const { sshSources } = routes.get(HOSTNAME) ?? expect.fail('there is no route')
    expect(['192.0.2.7', '198.51.100.1'].map((address) => sshSources.allows(address))).toEqual(allows)
    expect(sshSources.allows('::ffff:192.0.2.7')).toBe(allows[0])
  })

  test.each([
    { name: 'whose SSH tunnel was removed', database: shop({ spec: { sshTunnel: undefined } }) },
    { name: 'without a hostname', database: shop({ status: { sshTunnel: undefined } }) },
    { name: 'of another endpoint', database: shop({ status: { sshTunnel: { ...sshTunnel, endpointRef: { name: 'other' } } } }) },
    { name: 'that is being deleted', database: shop({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }) },
  ])('$name has no route', ({ database }) => {
    using routes = routesOf({ databases: [database] })
    expect(routes.get(HOSTNAME)).toBeUndefined()
  })

  test.each([
    ['mysql-8.0.29', 3306],
    ['mariadb-10.7.4', 3306],
    ['mongodb-7.0.2', 27_017],
    ['postgresql-14.4.0', 5432],
  ] as const)('of %s is reached at port %i', (motor, port) => {
    using routes = routesOf({ databases: [shop({ spec: { motor } })] })
    expect(routes.get(HOSTNAME)?.database?.port).toBe(port)
  })
})

describe('passwords', () => {
  const { name } = shop().metadata
  const ofTunnel = { hostname: 'fedcba9876543210', endpointRef: { name: 'mine' } }
  const forTunnel = (named: string, sha256: string) =>
    tunnelPassword({ metadata: { name: named }, spec: { tunnelRef: { name }, sha256 } })
  const objects = {
    databases: [shop()],
    tunnels: [tunnel({ metadata: { name }, status: ofTunnel })],
    passwords: [passwordOf('for-database'), forTunnel('for-tunnel', 'c'.repeat(64))],
  }

  test('of a database open this database, not a tunnel of the same name', () => {
    using routes = routesOf(objects)
    expect(routes.get(HOSTNAME)?.passwords.map(({ sha256 }) => sha256)).toEqual([SHA256])
    expect(routes.get(ofTunnel.hostname)?.passwords.map(({ sha256 }) => sha256)).toEqual(['c'.repeat(64)])
    expect(routes.ofPassword(SHA256)?.hostname).toBe(HOSTNAME)
    expect(routes.ofPassword('c'.repeat(64))?.hostname).toBe(ofTunnel.hostname)
  })

  test('with the same hash as one of a tunnel select no route without a hostname', () => {
    using routes = routesOf({ ...objects, passwords: [...objects.passwords, forTunnel('copied', SHA256)] })
    expect(routes.ofPassword(SHA256)).toBeUndefined()
  })
})
