import { once } from 'node:events'
import { connect } from 'node:net'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { testFirewall, testFirewallOfIpv6 } from '../../support/access/firewall-tests.ts'
import { openRelay } from '../../support/access/relay.ts'
import { expectRefused, restrictedServer, TENANT } from '../../support/access/restricted-server.ts'

describe('PostgreSQL on 127.0.0.1', () => {
  const server = restrictedServer('postgresql-15.4.0')
  testFirewall(server)

  test('a tenant cannot change the rules', async () => {
    await server.restrict({ sources: ['127.0.0.2'] })
    const session = await server.from('127.0.0.2')
    for (const attempt of [
      `ALTER SYSTEM SET hba_file = '/tmp/hba'`,
      `SET hba_file = '/tmp/hba'`,
      'SELECT pg_reload_conf()',
      `SELECT pg_read_file(current_setting('hba_file'))`,
      'SELECT * FROM pg_hba_file_rules',
      `COPY (SELECT 1) TO '/tmp/pg_hba.conf'`,
    ])
      await expect(session.run(attempt), attempt).rejects.toThrow()
    await expectRefused(server, '127.0.0.1')
  })
})

describe('PostgreSQL with a login that is under way during a change', () => {
  const server = restrictedServer('postgresql-15.4.0')

  test('endExcluded ends the session after the login, and no others', async () => {
    await server.restrict({ sources: ['127.0.0.2', '127.0.0.3'] })
    const stays = await server.from('127.0.0.3')
    await using relay = await openRelay({ host: '127.0.0.1', port: server.state.port, from: '127.0.0.2' })
    const [asked, answer] = [Promise.withResolvers<undefined>(), Promise.withResolvers<string>()]
    const password = () => {
      asked.resolve(undefined)
      return answer.promise
    }
    const client = new pg.Client({ host: '127.0.0.1', port: relay.port, user: TENANT.name, database: TENANT.name, password })
    client.on('error', () => undefined)
    const connected = client.connect()
    await asked.promise
    await server.restrict({ sources: ['127.0.0.3'] })
    expect(await server.admin.endExcluded()).toBe(0)
    answer.resolve(TENANT.password)
    await connected
    const ended = new Promise((resolve) => client.once('end', resolve))
    expect(await server.admin.endExcluded()).toBe(1)
    await ended
    await stays.run(server.harmless)
  })
})

/** Rejects when nothing listens on the address. */
async function listensOn(host: string, port: number): Promise<void> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect')
  } finally {
    socket.destroy()
  }
}

describe('PostgreSQL on ::1', () => {
  testFirewallOfIpv6(restrictedServer('postgresql-15.4.0', '::1'))
})

describe('PostgreSQL on 0.0.0.0', () => {
  const server = restrictedServer('postgresql-15.4.0', '0.0.0.0')

  test('a private server listens on 127.0.0.1 alone', async () => {
    expect(server.state.host).toBe('0.0.0.0')
    const { port } = server.state
    await server.restrict({ isPrivate: true, sources: [] })
    expect(server.state).toMatchObject({ host: '127.0.0.1', port })
    await server.from('127.0.0.2')
    await expect(listensOn('127.0.0.2', port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await server.restrict({ sources: ['127.0.0.2'] })
    expect(server.state).toMatchObject({ host: '0.0.0.0', port })
    await expectRefused(server, '127.0.0.1')
  })
})
