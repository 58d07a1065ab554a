import type pg from 'pg'
import { beforeAll, inject } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { type Series, startPostgres } from './postgres.ts'
import type { ThrowAwayPostgres } from './throw-away-postgres.ts'

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

export function postgresqlBench(series: Series): EngineBench {
  let running: { server: ThrowAwayPostgres; admin: EngineAdmin } | undefined

  beforeAll(async () => {
    const image = inject('postgresImages')?.[series]
    const server = image === undefined ? await startPostgres(series) : await startContainer(image, MOTORS_OF[series])
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
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}
