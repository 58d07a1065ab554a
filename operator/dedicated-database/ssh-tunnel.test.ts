import { describe, expect, test } from 'vitest'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { dedicatedDatabase, dedicatedServer, runningStatus } from '../../test/builders/dedicated.ts'
import { REGION_ID, tunnel, tunnelEndpoint } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { isHostnameTaken, drawHostname } from '../tunnel/hostnames.ts'
import { tunnelIndexes } from '../tunnel/indexes.ts'
import { databaseIndexes } from './indexes.ts'
import { isHostnameAssigned, sshEndpointOf, sshTunnelFields } from './ssh-tunnel.ts'

const NOW = new Date('2026-02-03T04:05:06Z')
const HOSTNAME = '0123456789abcdef'
const settings = { authMode: 'both', authorizedKeys: [] } as const
const withTunnel = (authorizedKeys: readonly string[] = []) =>
  dedicatedDatabase({
    spec: { sshTunnel: { ...settings, authorizedKeys: [...authorizedKeys] } },
    status: { ...runningStatus, sshTunnel: { hostname: HOSTNAME, endpointRef: { name: 'main' } } },
  })
const endpointNamed = (name: string, spec: object = {}) =>
  tunnelEndpoint({ metadata: { name }, spec: { region: REGION_ID, ...spec } })

function edges(...endpoints: readonly TunnelEndpoint[]) {
  const [known, tunnels] = [settableCache(TunnelEndpoint), settableCache(Tunnel, tunnelIndexes)]
  known.put(...endpoints)
  return { endpoints: known.cache, tunnels: tunnels.cache }
}

describe('the endpoint of an SSH tunnel is', () => {
  const wanted = dedicatedDatabase({ spec: { sshTunnel: settings } })
  test.each([
    { name: 'none without the add-on', database: dedicatedDatabase({}), endpoints: [endpointNamed('main')], is: undefined },
    { name: 'one of the region', database: wanted, endpoints: [endpointNamed('main')], is: 'main' },
    {
      name: 'none of another region',
      database: wanted,
      endpoints: [endpointNamed('far', { region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a99' })],
      is: undefined,
    },
    { name: 'none without edges', database: wanted, endpoints: [endpointNamed('main', { replicas: 0 })], is: undefined },
    {
      name: 'the assigned one, even when that is inactive',
      database: withTunnel(),
      endpoints: [endpointNamed('another'), endpointNamed('main', { active: false })],
      is: 'main',
    },
    { name: 'another one when the assigned one is gone', database: withTunnel(), endpoints: [endpointNamed('next')], is: 'next' },
  ])('$name', ({ database, endpoints, is }) => {
    expect(sshEndpointOf(database, edges(...endpoints))?.metadata.name).toBe(is)
  })
})

test('a hostname is assigned once, and again for another endpoint', () => {
  const wanted = dedicatedDatabase({ spec: { sshTunnel: settings } })
  expect(isHostnameAssigned({ database: wanted, endpoint: undefined })).toBe(true)
  expect(isHostnameAssigned({ database: wanted, endpoint: endpointNamed('main') })).toBe(false)
  expect(isHostnameAssigned({ database: withTunnel(), endpoint: endpointNamed('main') })).toBe(true)
  expect(isHostnameAssigned({ database: withTunnel(), endpoint: endpointNamed('next') })).toBe(false)
})

describe('the status of an SSH tunnel', () => {
  const endpoint = endpointNamed('main', { sshHost: 'ssh.example.com', ports: { ssh: 22, http: 80, https: 443 } })
  const server = dedicatedServer({ status: { edgeAddress: { host: '10.0.0.7', port: 5432 } } })
  const reasonOf = (fields: ReturnType<typeof sshTunnelFields>) =>
    fields.conditions?.find(({ type }) => type === 'SshTunnelReady')?.reason

  test('has the addresses of the edge and of the server', () => {
    const fields = sshTunnelFields({ database: withTunnel(), endpoint }, server, NOW)
    expect(fields.sshTunnel).toEqual({
      ...{ hostname: HOSTNAME, endpointRef: { name: 'main' }, host: 'ssh.example.com', port: 22 },
      server: { host: '10.0.0.7', port: 5432 },
    })
    expect(reasonOf(fields)).toBe('Assigned')
  })

  test('names a key that no client can use', () => {
    const fields = sshTunnelFields({ database: withTunnel(['ssh-ed25519 AAAA']), endpoint }, server, NOW)
    expect(reasonOf(fields)).toBe('UnusableKey')
    expect(fields.conditions?.at(-1)?.message).toContain('spec.sshTunnel.authorizedKeys[0]')
  })

  test('says that no endpoint accepts it, and stays as it is', () => {
    const fields = sshTunnelFields({ database: withTunnel(), endpoint: undefined }, server, NOW)
    expect([fields.sshTunnel, reasonOf(fields)]).toEqual([undefined, 'NoActiveEndpoint'])
  })

  test('is removed with the add-on', () => {
    const before = dedicatedDatabase({ status: withTunnel().status })
    const fields = sshTunnelFields({ database: before, endpoint: undefined }, server, NOW)
    expect([fields.sshTunnel, reasonOf(fields)]).toEqual([null, undefined])
  })
})

test('no tunnel and no database gets the hostname of another one', () => {
  const [tunnels, databases] = [settableCache(Tunnel, tunnelIndexes), settableCache(DedicatedDatabase, databaseIndexes)]
  const owners = { tunnels: tunnels.cache, databases: databases.cache }
  databases.put(withTunnel())
  tunnels.put(tunnel({ status: { hostname: 'fedcba9876543210' } }))
  const taken = [HOSTNAME, 'fedcba9876543210', '00000000000000ff'].map((name) => isHostnameTaken(owners, name))
  expect(taken).toEqual([true, true, false])
  expect(drawHostname(owners)).toMatch(/^[0-9a-f]{16}$/)
})
