import { describe, expect, inject, test } from 'vitest'
import { EXPORTER_USER } from '../../../operator/engines/exporter.ts'
import { expectReplacedAndDropped } from '../../support/exporter-login.ts'
import { ask, errno, mysqlBench, rows } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'

const motors = MOTORS.filter(({ motor }) => inject('motors').includes(motor))
/** ER_TABLEACCESS_DENIED_ERROR, and ER_DBACCESS_DENIED_ERROR of a database without any privilege. */
const DENIED = [1142, 1044]

describe.each(motors)('the login of an exporter of $motor', ({ motor }) => {
  const bench = mysqlBench(motor)
  const logIn = (password: string) => bench.server.client({ user: EXPORTER_USER, password })

  test('reads statistics and no data, and accepts only its last password until it is dropped', async () => {
    const { admin } = bench
    const tenant = await bench.tenant('secretive')
    await (await bench.as(tenant)).query('CREATE TABLE items (n INT)')
    // Each session then calls the procedure that checks its source, as on a dedicated server.
    await admin.admit(['127.0.0.1/32'])
    await admin.monitor('first')
    await admin.monitor('first')
    const session = await logIn('first')
    expect((await rows(session, "SHOW GLOBAL STATUS LIKE 'Queries'")).length).toBe(1)
    expect(await ask(session, `SELECT COUNT(*) > 0 FROM information_schema.PROCESSLIST`)).toBe(1)
    expect(DENIED).toContain(await errno(session.query('SELECT * FROM secretive.items')))
    expect(DENIED).toContain(await errno(session.query('SELECT * FROM mysql.user')))
    expect(DENIED).toContain(await errno(session.query('CREATE DATABASE own')))

    await expectReplacedAndDropped({ admin, logIn })
  })
})
