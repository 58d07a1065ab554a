import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../support/postgresql/engine.ts'
import { SERIES } from '../support/postgresql/postgres.ts'
import type { EngineAdmin } from '../../operator/engines/engine.ts'
import { connect, type Connection, type Session } from '../../operator/engines/postgresql/connection.ts'
import { postgresqlAdmin } from '../../operator/engines/postgresql/postgresql.ts'

/** Connection that fails after `statements` statements, like one of a process that was killed. */
function mortal(connection: Connection, statements: number): Connection {
  let left = statements
  const dying = (session: Session): Session => ({
    query: async (...args) => {
      if (left-- <= 0) throw new Error('the process is gone')
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
    inside: (database, work) => connection.inside(database, (session) => work(dying(session))),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

interface Case {
  readonly what: string
  /** Sets the initial state before each round, for tenant `victim`. `source` may be its template. */
  readonly given?: (admin: EngineAdmin) => Promise<unknown>
  readonly operation: (admin: EngineAdmin) => Promise<unknown>
  readonly exists: boolean
}

const victim = { name: 'victim', password: 'password-of-victim' }
const claim = (admin: EngineAdmin): Promise<unknown> => admin.claim(victim, LIMITS, {})

const CASES: readonly Case[] = [
  { what: 'a claim from an empty pool', operation: claim, exists: true },
  { what: 'a claim from the pool', given: (admin) => admin.tidy(1), operation: claim, exists: true },
  { what: 'a claim from a template', operation: (admin) => admin.claim(victim, LIMITS, { template: 'source' }), exists: true },
  { what: 'a reset', given: claim, operation: (admin) => admin.reset('victim', {}), exists: true },
  {
    what: 'a reset to a template',
    given: claim,
    operation: (admin) => admin.reset('victim', { template: 'source' }),
    exists: true,
  },
  { what: 'a drop', given: claim, operation: (admin) => admin.drop('victim'), exists: false },
]

describe.each(SERIES)('PostgreSQL %s, after a crash of the process', (series) => {
  const bench = postgresqlBench(series)

  test.each(CASES)(
    'at any statement of $what, a repetition completes it and leaves nothing over',
    async ({ given, operation, exists }) => {
      const source = await bench.tenant('source')
      await (await bench.as(source)).query('CREATE TABLE IF NOT EXISTS copied (n int)')
      await (await bench.server.client()).query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'source'`)

      for (let statements = 0, died = true; died; statements++) {
        await given?.(bench.admin)
        died = await (async () => {
          await using admin = postgresqlAdmin(bench.server.target, mortal(connect(bench.server.target), statements))
          return await operation(admin).then(
            () => false,
            () => true,
          )
        })()
        await using next = postgresqlAdmin(bench.server.target)
        await operation(next)
        if (exists) await next.verify(victim)
        while (await next.tidy(0));
        const { tenants, spare, leftovers } = await next.catalog()
        expect({ tenants: [...tenants.keys()].toSorted(), spare, leftovers }).toEqual({
          tenants: exists ? ['source', 'victim'] : ['source'],
          spare: 0,
          leftovers: [],
        })
        await next.drop('victim')
      }
    },
    120_000,
  )
})
