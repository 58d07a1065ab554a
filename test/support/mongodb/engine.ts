import type { MongoClient } from 'mongodb'
import { beforeAll } from 'vitest'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'
import { mongodbAdmin } from '../../../operator/engines/mongodb/mongodb.ts'
import { type MongodOptions, type Series, startMongod, type ThrowAwayMongod } from './mongod.ts'

export const LIMITS = { connections: 12 }

/** MongoDB server and its admin, for one `describe`. Use its members within tests only. */
export interface EngineBench {
  readonly server: ThrowAwayMongod
  readonly admin: EngineAdmin
  /** Claims a new tenant with this name. */
  tenant(name: string): Promise<Tenant>
  /** Opens a client of a tenant with one connection. */
  as(tenant: Tenant): Promise<MongoClient>
}

export function mongodbBench(series: Series, options: MongodOptions = {}): EngineBench {
  let running: { server: ThrowAwayMongod; admin: EngineAdmin } | undefined

  beforeAll(async () => {
    const server = await startMongod(series, options)
    const admin = mongodbAdmin(server.target)
    await admin.harden()
    running = { server, admin }
    return async () => {
      await admin[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    }
  })

  const now = (): { server: ThrowAwayMongod; admin: EngineAdmin } => {
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
    as: ({ name, password }) => now().server.client({ user: name, password }),
  }
}
