import { expect, test } from 'vitest'
import { dedicatedDatabase } from '../../test/builders/dedicated.ts'
import { accessOf, monitoringOf, patchOf, serverNameOf, serverOf } from './resources.ts'

const rule = (cidr: string) => ({ cidr })

test.each([
  { name: 'without rules is open to all sources', spec: {}, closed: false, access: { isPrivate: false } },
  {
    name: 'without rules is closed where the plan says so',
    spec: {},
    closed: true,
    access: { isPrivate: false, sources: [] },
  },
  ...[true, false].map((closed) => ({
    name: `with an empty list is closed (by default: ${closed})`,
    spec: { firewallRules: [] },
    ...{ closed, access: { isPrivate: false, sources: [] } },
  })),
  {
    name: 'with rules is open to these sources, without duplicates',
    spec: { firewallRules: [rule('192.0.2.0/24'), rule('2001:db8::1'), rule('192.0.2.0/24')] },
    closed: true,
    access: { isPrivate: false, sources: ['192.0.2.0/24', '2001:db8::1'] },
  },
  {
    name: 'in a private network is closed, whatever its rules',
    spec: { privateNetwork: true, firewallRules: [rule('192.0.2.0/24')] },
    closed: false,
    access: { isPrivate: true, sources: [] },
  },
])('a database $name', ({ spec, closed, access }) => {
  expect(accessOf(dedicatedDatabase({ spec }), { closedByDefault: closed }, { organization: 'acme' })).toEqual({
    organization: 'acme',
    ...access,
  })
})

const SHAPE = { size: { cpu: 1, memoryMiB: 1024, storageGiB: 10 }, access: { organization: 'acme', isPrivate: false } }

test('a server is named after the uid of its database, and has room for one tenant', () => {
  const database = dedicatedDatabase({})
  const { metadata, spec } = serverOf(database, SHAPE)
  expect(metadata).toMatchObject({ namespace: 'mooring-shared', name: serverNameOf(database.metadata.uid) })
  expect(metadata.name).toMatch(/^dedicated-[a-z2-7]{10}$/)
  expect(spec).toMatchObject({ tenancy: 'dedicated', capacity: 1, motor: database.spec.motor, ...SHAPE })
})

test('the endpoint of an SSH tunnel may connect to any database', () => {
  const edges = { organization: 'acme', edges: 'main' }
  const of = (spec: object) => accessOf(dedicatedDatabase({ spec }), { closedByDefault: false }, edges)
  expect(of({})).toEqual({ ...edges, isPrivate: false })
  expect(of({ privateNetwork: true })).toEqual({ ...edges, isPrivate: true, sources: [] })
})

test('a patch of an open server removes its list of sources, its edges and its add-ons', () => {
  expect(patchOf(SHAPE)).toEqual({
    spec: { ...SHAPE, archive: null, monitoring: null, access: { ...SHAPE.access, sources: null, edges: null } },
  })
})

test('a server with monitoring names the database that its metrics belong to', () => {
  const monitoring = { namespace: 'acme--prod', database: 'orders' }
  expect(monitoringOf(dedicatedDatabase({ spec: { monitoring: true } }))).toEqual(monitoring)
  expect(monitoringOf(dedicatedDatabase())).toBeUndefined()
  expect(patchOf({ ...SHAPE, monitoring }).spec).toMatchObject({ monitoring })
})
