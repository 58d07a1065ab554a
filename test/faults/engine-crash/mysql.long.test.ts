import { describe } from 'vitest'
import { connect, type BoundedSession, type Connection, type Session } from '../../../operator/engines/mysql/connection.ts'
import { mysqlAdmin } from '../../../operator/engines/mysql/mysql.ts'
import { familyOf, mysqlBench } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'
import { crashAtEachStatement, fuse } from './each-statement.ts'

/** Connection that fails after `statements` statements, like one of a process that was killed. */
function mortal(connection: Connection, statements: number): Connection {
  const burn = fuse(statements)
  const dying = (session: Session): Session => ({
    query: async (...args) => {
      burn()
      return (await session.query(...args)) as never
    },
  })
  const dyingBounded = (session: BoundedSession): BoundedSession => ({
    ...dying(session),
    within: async (...args) => {
      burn()
      return (await session.within(...args)) as never
    },
  })
  return {
    ...dying(connection),
    tenants: dying(connection.tenants),
    watch: dyingBounded(connection.watch),
    alone: (work) => connection.alone((session) => work(dyingBounded(session))),
    frozen: (work) => connection.frozen((session) => work(dyingBounded(session))),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

describe.each(MOTORS)('$motor, after a crash of the process', ({ motor }) => {
  const bench = mysqlBench(motor)
  const family = familyOf(motor)

  crashAtEachStatement({
    get admin() {
      return bench.admin
    },
    open(statements = Infinity) {
      const { target } = bench.server
      return mysqlAdmin(target, family, mortal(connect(target, { family }), statements))
    },
    async furnish() {
      const session = await bench.as(await bench.tenant('source'))
      for (const statement of [
        'CREATE TABLE IF NOT EXISTS copied (n INT PRIMARY KEY)',
        'REPLACE INTO copied VALUES (1)',
        'CREATE OR REPLACE VIEW seen AS SELECT n FROM copied',
        'DROP TRIGGER IF EXISTS fires',
        'CREATE TRIGGER fires BEFORE INSERT ON copied FOR EACH ROW SET NEW.n = NEW.n',
      ]) {
        await session.query(statement)
      }
      await session.end()
    },
  })
})
