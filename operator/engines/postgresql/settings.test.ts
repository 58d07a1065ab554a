import { expect, test } from 'vitest'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from './settings.ts'

const server = { listen: '127.0.0.1', port: 5432, hbaFile: '/config/pg_hba.conf' }

test('settings keep data safe after a crash', () => {
  expect(postgresqlSettings(server)).toMatchObject({ fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' })
})

test('settings keep statements out of the log', () => {
  expect(postgresqlSettings(server)).toMatchObject({
    log_statement: 'none',
    log_min_duration_statement: '-1',
    log_min_error_statement: 'panic',
  })
})

test('max_connections covers the connections of all tenants and 24 reserved slots', () => {
  expect(postgresqlSettings(server)).toMatchObject({
    max_connections: '654',
    superuser_reserved_connections: '24',
    autovacuum_multixact_freeze_max_age: '20000000',
  })
  expect(postgresqlSettings({ ...server, tenants: 10, connectionsPerTenant: 5 }).max_connections).toBe('104')
})

test('a certificate switches TLS on', () => {
  const tls = { certFile: '/config/server.crt', keyFile: '/config/server.key' }
  expect(postgresqlSettings({ ...server, tls })).toMatchObject({
    ssl: 'on',
    ssl_min_protocol_version: 'TLSv1.2',
    ssl_key_file: tls.keyFile,
  })
  expect(postgresqlSettings(server).ssl).toBe('off')
})

test('the log goes to rotated files of bounded size, or to stderr', () => {
  expect(postgresqlSettings({ ...server, logDirectory: '/log' })).toMatchObject({
    logging_collector: 'on',
    log_rotation_size: '10MB',
  })
  expect(postgresqlSettings(server).logging_collector).toBe('off')
})

test('postgresql.conf quotes values', () => {
  expect(postgresqlConf({ a: "it's", b: '' })).toBe("a = 'it''s'\nb = ''\n")
})

test.each([
  {
    reach: 'loopback',
    records: [
      'host all "mooring" 127.0.0.0/8 scram-sha-256',
      'host all "mooring" ::1/128 scram-sha-256',
      'host all "mooring" all reject',
      'host sameuser all 127.0.0.0/8 scram-sha-256',
      'host sameuser all ::1/128 scram-sha-256',
    ],
  },
  {
    reach: 'network',
    records: [
      'host all "mooring" 127.0.0.0/8 scram-sha-256',
      'host all "mooring" ::1/128 scram-sha-256',
      'hostssl all "mooring" samehost scram-sha-256',
      'host all "mooring" all reject',
      'host sameuser all 127.0.0.0/8 scram-sha-256',
      'host sameuser all ::1/128 scram-sha-256',
      'hostssl sameuser all all scram-sha-256',
    ],
  },
  {
    reach: 'tls',
    records: [
      'hostssl all "mooring" all scram-sha-256 clientcert=verify-full',
      'host all "mooring" all reject',
      'hostssl sameuser all all scram-sha-256',
    ],
  },
] as const)(
  '$reach: tenants may use only their own database, and the administrator may log in only from the operator',
  ({ reach, records }) => {
    expect(postgresqlHba({ admin: 'mooring', reach }).trimEnd().split('\n')).toEqual(records)
  },
)

test('a database of Mooring’s own admits every role', () => {
  const records = postgresqlHba({ admin: 'mooring', reach: 'tls', own: ['mooring_journal'] })
    .trimEnd()
    .split('\n')
  expect(records.at(-1)).toBe('hostssl "mooring_journal" all all scram-sha-256')
})
