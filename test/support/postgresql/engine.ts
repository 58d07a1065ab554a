import type pg from 'pg'
import { beforeAll, inject } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { type Series, startPostgres } from './postgres.ts'
import type { ThrowAwayPostgres } from './throw-away-postgres.ts'

export const LIMITS = { connections: 12 }

/**
 * A hardened PostgreSQL server and its admin, for one `describe`. Its members may be used from within tests only. The server is of the npm
 * packages, or a container where the run has images to test.
 */
export interface EngineBench {
  readonly server: ThrowAwayPostgres
  readonly admin: EngineAdmin
  /** Claims a new tenant of that name. */
  tenant(name: string): Promise<Tenant>
  /** Logs a tenant in. */
  as(tenant: Tenant, database?: string): Promise<pg.Client>
  /** Calls tidy until it has no more to do. */
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

/** Only loaded where it is asked for: the library takes most of a second. */
async function startContainer(image: string, motor: Motor): Promise<ThrowAwayPostgres> {
  const { startPostgresContainer } = await import('./postgres-container.ts')
  return startPostgresContainer(image, motor)
}

/** Waits for a condition that another process brings about. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}
