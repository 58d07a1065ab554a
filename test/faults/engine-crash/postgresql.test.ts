import { describe } from 'vitest'
import { connect, type Connection, type Session } from '../../../operator/engines/postgresql/connection.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
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
  return {
    ...dying(connection),
    tenants: dying(connection.tenants),
    spares: dying(connection.spares),
    copies: dying(connection.copies),
    drops: dying(connection.drops),
    watch: dying(connection.watch),
    lockTable: connection.lockTable,
    ended: connection.ended,
    stalls: connection.stalls,
    inside: (database, work) => connection.inside(database, (session) => work(dying(session))),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

describe.each(SERIES)('PostgreSQL %s, after a crash of the process', (series) => {
  const bench = postgresqlBench(series)

  crashAtEachStatement({
    get admin() {
      return bench.admin
    },
    open(statements = Infinity) {
      const { target } = bench.server
      return postgresqlAdmin(target, mortal(connect(target), statements))
    },
    async furnish() {
      const source = await bench.tenant('source')
      await (await bench.as(source)).query('CREATE TABLE IF NOT EXISTS copied (n int)')
      await (await bench.server.client()).query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'source'`)
    },
  })
})
