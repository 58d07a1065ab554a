import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { beforeAll, inject } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { type PostgresOptions, type Series, startPostgres, type ThrowAwayPostgres } from './postgres.ts'

/** Limits of a tenant. */
export const LIMITS = { connections: 12 }

/**
 * Hardened PostgreSQL server and its admin, for one `describe`. Use its members within tests only. The server comes from the npm
 * packages, or from a container when the run has images to test.
 */
export interface EngineBench {
  readonly server: ThrowAwayPostgres
  readonly admin: EngineAdmin
  /** Claims a new tenant with this name. */
  tenant(name: string): Promise<Tenant>
  /** Opens a session of a tenant. */
  as(tenant: Tenant, database?: string): Promise<pg.Client>
  /** Calls `tidy` until nothing is left to do. */
  settle(size: number): Promise<void>
}

/** Starts a server of this series before the tests of a `describe`, and stops it after them. `options` do not apply to a container. */
export function postgresqlBench(series: Series, options: PostgresOptions = {}): EngineBench {
  let running: { server: ThrowAwayPostgres; admin: EngineAdmin } | undefined

  beforeAll(async () => {
    const image = inject('postgresImages')?.[series]
    const server = image === undefined ? await startPostgres(series, options) : await startContainer(image, MOTORS_OF[series])
    const admin = postgresqlAdmin(server.target)
    await admin.harden()
    running = { server, admin }
    return async () => {
      await admin[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    }
  })

  const now = (): { server: ThrowAwayPostgres; admin: EngineAdmin } => {
    if (!running) throw new Error('the server is started before the first test')
    return running
  }
  return {
    get server() {
      return now().server
    },
    get admin() {
      return now().admin
    },
    async tenant(name) {
      const tenant = { name, password: `password-of-${name}` }
      await now().admin.claim(tenant, LIMITS, {})
      return tenant
    },
    as: (tenant, database = tenant.name) => now().server.client({ user: tenant.name, password: tenant.password, database }),
    async settle(size) {
      while (await now().admin.tidy(size));
    },
  }
}

const MOTORS_OF = { '14': 'postgresql-14.4.0', '15': 'postgresql-15.4.0' } as const satisfies Record<Series, Motor>

/** Loaded on demand: the library takes most of a second. */
async function startContainer(image: string, motor: Motor): Promise<ThrowAwayPostgres> {
  const { startPostgresContainer } = await import('./postgres-container.ts')
  return startPostgresContainer(image, motor)
}

/** Waits until another process has made a condition true. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(20)
}

/** SQLSTATE of insufficient_privilege. */
export const DENIED = '42501'

/** Two tenants of one server whose administrator is `mooring`: `mallory` attacks, `victim` has a table that all may read. */
export interface Neighbours {
  readonly bench: EngineBench
  readonly mallory: Tenant
  readonly victim: Tenant
  asMallory(): Promise<pg.Client>
  asVictim(): Promise<pg.Client>
}

/** Creates the tenants for one `describe`. Use the members within tests only. */
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

/** Returns the error of `work`, undefined when it succeeds. */
export async function rejection(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  return undefined
}
