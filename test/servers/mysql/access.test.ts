import mysql from 'mysql2/promise'
import { describe, expect, test } from 'vitest'
import { testFirewall, testFirewallOfIpv6 } from '../../support/access/firewall-tests.ts'
import { openRelay } from '../../support/access/relay.ts'
import { expectRefused, restrictedServer, TENANT } from '../../support/access/restricted-server.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { MOTORS } from '../../support/mysql/server.ts'

/** Statements by which a tenant tries to let other sources in. */
const ATTEMPTS = [
  `SET GLOBAL init_connect = ''`,
  `SET SESSION init_connect = ''`,
  'DROP DATABASE mooring_access',
  'DROP PROCEDURE mooring_access.verify',
  'CREATE PROCEDURE mooring_access.other() SELECT 1',
  `INSERT INTO mooring_access.admitted VALUES ('', '')`,
  'SELECT * FROM mooring_access.admitted',
  'TRUNCATE mooring_access.admitted',
  'LOCK TABLES mooring_access.admitted WRITE',
  'RENAME TABLE mooring_access.admitted TO tenant.admitted',
  'CREATE VIEW v AS SELECT * FROM mooring_access.admitted',
  `CREATE USER 'other'@'%'`,
  `ALTER USER USER() PASSWORD EXPIRE`,
  `ALTER USER CURRENT_USER() PASSWORD EXPIRE`,
  'GRANT SUPER ON *.* TO CURRENT_USER()',
  `SET PERSIST init_connect = ''`,
  `SET PERSIST_ONLY init_connect = ''`,
]

/** Statements by which a tenant tries to keep a lock on the table of ranges. Some of them fail. */
const LOCKS = {
  'in a transaction': ['START TRANSACTION', 'CALL mooring_access.verify()'],
  'in a serializable transaction': [
    'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    'START TRANSACTION',
    'CALL mooring_access.verify()',
  ],
  'without autocommit': [
    'SET autocommit = 0',
    'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    'CALL mooring_access.verify()',
  ],
  'in chained transactions': [
    'SET completion_type = 1',
    'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    'START TRANSACTION',
    'CALL mooring_access.verify()',
  ],
  'in an XA transaction': ["XA START 'x'", 'CALL mooring_access.verify()'],
  'in a function': [
    'CREATE FUNCTION f() RETURNS INT BEGIN CALL mooring_access.verify(); RETURN 1; END',
    'CREATE TABLE IF NOT EXISTS calls (id INT)',
    'START TRANSACTION',
    'INSERT INTO calls SELECT f()',
  ],
  'by a foreign key': [
    `CREATE TABLE child (low VARBINARY(16), high VARBINARY(16),
      FOREIGN KEY (low, high) REFERENCES mooring_access.admitted (low, high)) ENGINE = InnoDB`,
    'START TRANSACTION',
    `INSERT INTO child VALUES (X'7F000002', X'7F000002')`,
  ],
}

/** Character sets in which some bytes of SQL mean other characters. */
const CHARSETS = ['SJIS_JAPANESE_CI', 'GBK_CHINESE_CI', 'BIG5_CHINESE_CI', 'BINARY']

describe.each(underTest(MOTORS))('$motor on 127.0.0.1', ({ motor }) => {
  const server = restrictedServer(motor)
  testFirewall(server)

  test('a tenant cannot change the rules', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    const session = await server.from('127.0.0.2')
    for (const attempt of ATTEMPTS) await expect(session.run(attempt), attempt).rejects.toThrow()
    // It may call the procedure, which decides about its own session.
    await session.run('CALL mooring_access.verify()')
    await expectRefused(server, '127.0.0.1')
    await server.from('127.0.0.2')
  })

  test.each(Object.entries(LOCKS))(
    'a call of the procedure %s does not hold up a change of the rules',
    async (_how, statements) => {
      await server.restrict({ sources: ['127.0.0.2'] })
      const session = await server.from('127.0.0.2')
      for (const statement of statements) await session.run(statement).catch(() => undefined)
      await server.restrict({ sources: ['127.0.0.3'] })
      await expect(session.run(server.harmless)).rejects.toThrow()
      await expectRefused(server, '127.0.0.2')
    },
  )

  test.each(CHARSETS)('the character set %s of a client changes nothing', async (charset) => {
    await server.restrict({ sources: ['127.0.0.2'] })
    for (const from of ['127.0.0.1', '127.0.0.2']) {
      await using relay = await openRelay({ host: '127.0.0.1', port: server.state.port, from })
      const login = { host: '127.0.0.1', port: relay.port, user: TENANT.name, password: TENANT.password, charset }
      const client = await mysql.createConnection(login)
      client.on('error', () => undefined)
      const work = client.query('SELECT 1')
      if (from === '127.0.0.2') await work
      else await expect(work).rejects.toThrow()
      client.destroy()
    }
  })

  test.each(['changeUser', 'ping', 'reset'] as const)('%s as the first command does not avoid the check', async (command) => {
    await server.restrict({ sources: ['127.0.0.2'] })
    await using relay = await openRelay({ host: '127.0.0.1', port: server.state.port, from: '127.0.0.1' })
    const login = { user: TENANT.name, password: TENANT.password, database: TENANT.name }
    const client = await mysql.createConnection({ ...login, host: '127.0.0.1', port: relay.port })
    client.on('error', () => undefined)
    const commands = { changeUser: () => client.changeUser(login), ping: () => client.ping(), reset: () => client.reset() }
    await expect(commands[command]()).rejects.toThrow()
    await expect(client.query('SELECT 1')).rejects.toThrow()
    client.destroy()
  })
})

describe.each(underTest(MOTORS))('$motor on ::1', ({ motor }) => {
  testFirewallOfIpv6(restrictedServer(motor, '::1'))
})

// MariaDB on :: listens on IPv6 alone, and TLS of MySQL 5.7 is older than Node's.
describe.each(underTest(MOTORS).filter(({ motor }) => motor === 'mysql-8.0.29'))('$motor on ::', ({ motor }) => {
  const server = restrictedServer(motor, '::')

  test('a client with an IPv4-mapped address counts as IPv4', async () => {
    await server.restrict({ sources: ['127.0.0.2', '::ffff:127.0.0.3'] })
    await server.from('127.0.0.2')
    await server.from('127.0.0.3')
    await expectRefused(server, '127.0.0.1')
    await expectRefused(server, '::1')
  })
})
