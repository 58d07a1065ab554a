import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { partsOf } from '../../../crds/motor.ts'
import { connect, type Session } from '../../../operator/engines/mysql/connection.ts'
import { createMeasure } from '../../../operator/engines/mysql/sizes/measure.ts'
import { familyOf, mysqlBench } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'
import { slowStatements, totalOf } from '../../support/slow-statements.ts'

const motors = MOTORS.filter(({ motor }) => inject('motors').includes(motor))

describe.each(motors)('$motor', ({ motor }) => {
  const bench = mysqlBench(motor)

  test('measures the tenant’s connections, transactions, page reads and slow statements', async () => {
    const { admin } = bench
    expect(await admin.measure('nobody')).toBeUndefined()
    const tenant = await bench.tenant('measured')
    const session = await bench.as(tenant)
    const other = await bench.as(tenant)
    const measure = async () => (await admin.measure('measured')) ?? expect.fail('not measured')
    await expect.poll(async () => (await measure()).connections).toBe(2)
    const before = await measure()
    const own = slowStatements()
    const run = (statement: string) => own.run(() => session.query(statement))
    await run('CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(1000))')
    for (let index = 0; index < 50; index += 1) await run("INSERT INTO t (text) VALUES (REPEAT('x', 1000))")
    for (let index = 0; index < 6; index += 1) await run('INSERT INTO t (text) SELECT text FROM t')
    const after = await measure()
    expect(after.transactions - before.transactions).toBeGreaterThanOrEqual(56)
    expect(after.transactions - before.transactions).toBeLessThan(150)
    expect(after.sizeBytes - before.sizeBytes).toBeGreaterThan(1_000_000)
    expect(after.pages.reads).toBeGreaterThan(before.pages.reads)
    expect(after.pages.misses).toBeLessThanOrEqual(after.pages.reads)
    if ('running' in before.slow) expect(after.slow).toEqual({ running: 0 })
    else expect(totalOf(after.slow) - totalOf(before.slow)).toBeLessThanOrEqual(own.atMost())
    if ('running' in before.slow) {
      const slow = other.query('SELECT SLEEP(600)')
      await expect.poll(async () => (await measure()).slow).toEqual({ running: 1 })
      await session.query(`KILL QUERY ${other.threadId}`)
      await slow
    } else await other.query('SELECT SLEEP(3.5)')
    const counted = partsOf(motor).family === 'mariadb' ? { total: totalOf(after.slow) + 1 } : { running: 0 }
    expect((await measure()).slow).toEqual(counted)
    // What the operator itself does counts little.
    const idle = await measure()
    expect((await measure()).transactions - idle.transactions).toBeLessThanOrEqual(30)
  })

  test('measures many tables and views with few statements, and lists tables of other engines alone', async () => {
    const session = await bench.as(await bench.tenant('many'))
    const connection = connect(bench.server.target, { family: familyOf(motor) })
    onTestFinished(() => connection[Symbol.asyncDispose]())
    const answers: number[] = []
    const watch: Session = {
      async query<Row extends object>(text: string, values?: readonly unknown[]) {
        const found = await connection.watch.query<Row>(text, values)
        answers.push(found.length)
        return found
      },
    }
    const measure = createMeasure({ watch }, familyOf(motor))
    const sizeOf = async () => (await measure('many'))?.sizeBytes ?? expect.fail('not measured')
    await session.query('CREATE TABLE t (text LONGTEXT)')
    const before = await sizeOf()
    answers.length = 0
    await sizeOf()
    const statements = answers.length
    for (let index = 0; index < 50; index += 1) await session.query(`CREATE VIEW v${index} AS SELECT * FROM t`)
    for (let index = 0; index < 50; index += 1) await session.query(`CREATE TABLE t${index} (n INT) ENGINE=MyISAM`)
    await session.query('CREATE TABLE myisam (text LONGTEXT) ENGINE=MyISAM')
    await session.query(`INSERT INTO myisam VALUES (REPEAT('x', 4000000))`)
    answers.length = 0
    expect(await sizeOf()).toBeGreaterThan(before + 4_000_000)
    expect(answers).toHaveLength(statements + 1)
    expect(Math.max(...answers)).toBe(51)
    // A lock of the tenant hides the table.
    await session.query('LOCK TABLES myisam WRITE, t WRITE')
    expect(await sizeOf()).toBeGreaterThan(before + 4_000_000)
  })
})
