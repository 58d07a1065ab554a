import { expect, test } from 'vitest'
import { adminSql, mysqlSettings, nativeHash, optionFile } from './settings.ts'

const server = {
  ...{ listen: '127.0.0.1', port: 3306, data: '/data', initFile: '/init', logFile: '/log' },
  family: 'mysql' as const,
  tls: { certFile: '/crt', keyFile: '/key' },
}

test('mysqlSettings requires TLS off loopback only', () => {
  expect(mysqlSettings(server)).not.toHaveProperty('require_secure_transport')
  expect(mysqlSettings({ ...server, listen: '0.0.0.0' })).toMatchObject({ require_secure_transport: 'ON' })
})

test('mysqlSettings has connections for every tenant, and some for the administrator', () => {
  expect(mysqlSettings({ ...server, tenants: 10, connectionsPerTenant: 5 })).toMatchObject({ max_connections: '104' })
})

test('adminSql has a hash of the password, in the words of the family', () => {
  const admin = { user: 'mooring', hash: nativeHash('secret'), host: '::1' } as const
  for (const family of ['mysql', 'mariadb'] as const) {
    const sql = adminSql({ ...admin, family })
    expect(sql).not.toContain('secret')
    expect(sql).toContain(nativeHash('secret'))
    expect(
      sql
        .split('\n')
        .filter(Boolean)
        .every((line) => line.endsWith(';')),
    ).toBe(true)
  }
})

test('nativeHash is the value of PASSWORD()', () => {
  expect(nativeHash('pw')).toBe('*D821809F681A40A6E379B50D0463EFAE20BDD122')
})

test('optionFile has one option a line', () => {
  expect(optionFile({ port: '3306', skip_log_bin: '1' })).toBe('[mysqld]\nport=3306\nskip_log_bin=1\n')
})
