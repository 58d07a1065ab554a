import { describe, expect, test } from 'vitest'
import { LoginState } from '../../../operator/engines/engine.ts'
import { mysqlAdmin } from '../../../operator/engines/mysql/mysql.ts'
import { logInToMysql } from '../../../operator/server/process/programs/mysql.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { errno, familyOf, LIMITS, mysqlBench, until } from '../../support/mysql/bench.ts'
import { freePort } from '../../support/free-port.ts'
import { crowd } from '../../support/mysql/crowd.ts'
import { MOTORS } from '../../support/mysql/server.ts'

const TOO_MANY = 1040

/** MySQL 5.7 has no port for the administrator alone (docs/isolation.md, "What stays open on MySQL"). */
const WITH_OWN_PORT = underTest(MOTORS).filter(({ version }) => !version.startsWith('5.7'))

describe.each(WITH_OWN_PORT)('while clients hold every connection of a $motor server', ({ motor }) => {
  const bench = mysqlBench(motor)

  test('a server without the port for the administrator is administered by the port of its clients', async () => {
    const { target } = bench.server
    const closed = { ...target, adminAddress: { host: target.host, port: await freePort() } }
    expect(await logInToMysql(closed)).toEqual({ login: 'accepted' })
    await using admin = mysqlAdmin(closed, familyOf(motor))
    await admin.claim({ name: 'older', password: 'a' }, LIMITS, {})
    await admin.drop('older')
  })

  test('the operator creates, rotates and deletes, one that has just started too', async () => {
    const [holder, kept] = [await bench.tenant('holder'), await bench.tenant('kept')]
    const root = await bench.root()
    // A server for many tenants has more, which take longer to fill.
    const slots = 40
    await root.query(`SET GLOBAL max_connections = ${slots}`)
    await root.end()
    const sessions = await Promise.all(Array.from({ length: LIMITS.connections }, () => bench.as(holder)))
    using held = new DisposableStack()
    held.use(crowd(bench.server.target, slots + 20))
    // The last slot is that of an administrator.
    await until(async () => (await errno(bench.as(kept))) === TOO_MANY && (await errno(bench.root())) === TOO_MANY)

    const { target } = bench.server
    expect(await logInToMysql(target)).toEqual({ login: 'accepted' })
    await bench.admin.setPassword({ ...holder, password: 'b' })
    for (const session of sessions) await expect(session.query('SELECT 1')).rejects.toThrow()

    await using fresh = mysqlAdmin(target, familyOf(motor))
    const first = { name: 'first', password: 'a' }
    const second = { ...first, password: 'b' }
    await fresh.claim(first, LIMITS, {})
    await fresh.verify(first)
    await expect(fresh.verify(second)).rejects.toMatchObject({ code: 'login_refused' })
    expect(await fresh.findChangedPasswords([first, { ...kept, password: 'another' }])).toEqual(['kept'])
    await fresh.setPassword(second)
    await fresh.verify(second)
    await fresh.drop('first')
    expect(await fresh.find('first')).toEqual({ database: false, login: LoginState.absent })
  })
})
