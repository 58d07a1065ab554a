import { createHash } from 'node:crypto'
import { Gauge, type Registry } from 'prom-client'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'

export interface DiscardedDeps {
  readonly servers: Cache<typeof DatabaseServer>
  readonly registry: Registry
}

/**
 * Discarded databases that their servers could not remove yet, as the reconcilers of the pools last found them in the catalogs. They take
 * space: they count against the capacity of their server and the quota of their namespace, so that no tenant fills a disk by creating and
 * deleting instances.
 */
export interface Discarded {
  /** Replaces the owners of the discarded databases on a server, given by its object name: one entry for each database. */
  record(server: string, owners: readonly string[]): void
  countOn(server: string): number
  countIn(namespace: string): number
  /** Calls `handler` after the number of some owner has fallen. @returns a function that unsubscribes */
  onRemoval(handler: () => void): () => void
}

/** Number of hexadecimal digits of an owner (engine.ts, `EngineAdmin.drop`). */
const DIGITS = 8

/**
 * Returns the key of a namespace that the names of its discarded databases begin with: eight hexadecimal digits of a hash. Tenants can see it. It
 * does not reveal the namespace to a reader without the server's uid.
 */
export function ownerOf({ metadata: { uid } }: DatabaseServer, namespace: string): string {
  return createHash('sha256').update(`${uid} ${namespace}`).digest('hex').slice(0, DIGITS)
}

const times = (owner: string, owners: readonly string[]): number => owners.filter((one) => one === owner).length

export function createDiscarded({ servers, registry }: DiscardedDeps): Discarded {
  const byServer = new Map<string, readonly string[]>()
  const handlers = new Set<() => void>()
  const serverOf = (name: string) => servers.get({ namespace: SHARED_NAMESPACE, name })
  const countOn = (server: string): number => (serverOf(server) && byServer.get(server)?.length) ?? 0

  new Gauge({
    name: 'mooring_discarded_databases',
    help: 'Deleted or reset databases whose data could not be removed yet, because sessions of tenants prevent it.',
    registers: [registry],
    collect() {
      this.set([...byServer.keys()].reduce((sum, name) => sum + countOn(name), 0))
    },
  })

  return {
    record(server, owners) {
      const before = byServer.get(server) ?? []
      if (owners.length === 0) byServer.delete(server)
      else byServer.set(server, owners)
      if (before.some((owner) => times(owner, owners) < times(owner, before))) for (const handler of handlers) handler()
    },
    countOn,
    countIn(namespace) {
      let count = 0
      for (const [name, owners] of byServer) {
        const server = serverOf(name)
        if (!server) continue
        count += times(ownerOf(server, namespace), owners)
      }
      return count
    },
    onRemoval(handler) {
      handlers.add(handler)
      return () => void handlers.delete(handler)
    },
  }
}
