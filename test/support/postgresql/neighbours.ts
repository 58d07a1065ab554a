import type pg from 'pg'
import { beforeAll } from 'vitest'
import type { Tenant } from '../../../operator/engines/engine.ts'
import { type EngineBench, postgresqlBench } from './engine.ts'
import type { Series } from './postgres.ts'

/** insufficient_privilege */
export const DENIED = '42501'

/** Two tenants of one server whose administrator is `mooring`: `mallory` attacks, `victim` has a table that all may read. */
export interface Neighbours {
  readonly bench: EngineBench
  readonly mallory: Tenant
  readonly victim: Tenant
  asMallory(): Promise<pg.Client>
  asVictim(): Promise<pg.Client>
}

/** For one `describe`; the members may be used from within tests only. */
export function neighbours(series: Series): Neighbours {
  const bench = postgresqlBench(series)
  const mallory = { name: 'mallory', password: 'password-of-mallory' }
  const victim = { name: 'victim', password: 'password-of-victim' }
  beforeAll(async () => {
    await bench.tenant('mallory')
    await bench.tenant('victim')
    const client = await bench.as(victim)
    await client.query(
      'CREATE TABLE secret AS SELECT 1 AS n; GRANT SELECT ON secret TO PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC',
    )
  })
  return { bench, mallory, victim, asMallory: () => bench.as(mallory), asVictim: () => bench.as(victim) }
}

/** Error of `work`; undefined where there is none. */
export async function rejection(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  return undefined
}
