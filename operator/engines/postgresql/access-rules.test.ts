import { expect, test } from 'vitest'
import { admittedIn, admittedLine, postgresqlHba } from './settings.ts'

const ADMIN = ['host all "mooring" 127.0.0.0/8 scram-sha-256', 'host all "mooring" ::1/128 scram-sha-256']

/** Records for tenants: type and address. */
const tenantsIn = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line.includes(' sameuser all '))
    .map((line) => line.replace(/ sameuser all | scram-sha-256$/g, ' ').trim())

test.each([
  { name: 'every source', reach: 'loopback', sources: undefined, records: ['host 127.0.0.0/8', 'host ::1/128'] },
  { name: 'no source', reach: 'network', sources: [], records: [] },
  { name: 'a part of loopback', reach: 'loopback', sources: ['127.0.0.2/32', '192.0.2.0/24'], records: ['host 127.0.0.2/32'] },
  { name: 'loopback within a range', reach: 'loopback', sources: ['0.0.0.0/0'], records: ['host 127.0.0.0/8'] },
  {
    name: 'loopback without TLS, others with TLS',
    reach: 'network',
    sources: ['127.0.0.2/32', '192.0.2.0/24'],
    records: ['host 127.0.0.2/32', 'hostssl 127.0.0.2/32', 'hostssl 192.0.2.0/24'],
  },
  {
    name: 'sources with TLS alone',
    reach: 'tls',
    sources: ['127.0.0.0/8', '::/0'],
    records: ['hostssl 127.0.0.0/8', 'hostssl ::/0'],
  },
  { name: 'every client of a published port', reach: 'published', sources: undefined, records: ['host all'] },
  { name: 'no client of a published port', reach: 'published', sources: [], records: [] },
] as const)('tenants log in from $name ($reach)', ({ reach, sources, records }) => {
  const text = postgresqlHba({ admin: 'mooring', reach, access: { sources } })
  expect(tenantsIn(text)).toEqual(records)
  expect(admittedIn(text)).toBe(admittedLine(sources))
})

test('the administrator’s records do not depend on the sources', () => {
  const [open, closed] = [undefined, []].map((sources) =>
    postgresqlHba({ admin: 'mooring', reach: 'loopback', access: { sources } }),
  )
  for (const text of [open, closed]) expect(text?.split('\n').slice(1, 3)).toEqual(ADMIN)
})

test('a server that is not restricted has the records of one that admits every source', () => {
  for (const reach of ['loopback', 'network', 'tls', 'published'] as const) {
    const shared = postgresqlHba({ admin: 'mooring', reach })
    expect(postgresqlHba({ admin: 'mooring', reach, access: { sources: undefined } })).toBe(`# admitted: all\n${shared}`)
    expect(admittedIn(shared)).toBe('# admitted: all')
  }
})
