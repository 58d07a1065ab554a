import type { DatabaseServer } from '../../crds/database-server.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import type { Discarded } from '../server/discarded.ts'

export interface SlotsDeps {
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the indexes of indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  /** Discarded databases, which take space until they are removed. Default: none. */
  readonly discarded?: Pick<Discarded, 'countOn'> | undefined
}

/** Free slots of servers. A slot is reserved here, by uid, between the choice of a server and the status that records it. */
export interface Slots {
  /** Chooses the fullest ready server of the instance's region and motor with a free slot, and reserves that. */
  choose(instance: SharedInstance): DatabaseServer | undefined
  /** Reserves a slot on a server that was chosen before, e.g. by a former process. */
  hold(uid: string, server: string): void
  release(uid: string): void
  has(uid: string): boolean
  /** Server on which a slot is reserved. */
  of(uid: string): string | undefined
  freeOn(server: DatabaseServer): number
  /** Whether no instance is on the server, and none is about to be. */
  isEmpty(server: DatabaseServer): boolean
  /** Excludes a server from `choose`: it is being deleted, which the cache may not show yet. */
  retire(server: DatabaseServer): void
}

export function createSlots({ servers, instances, discarded }: SlotsDeps): Slots {
  const held = new Map<string, string>()
  /** Uids of retired servers. */
  const retired = new Set<string>()

  /** Number of instances that are on a server or about to be. */
  function usedOn({ metadata: { name } }: DatabaseServer): number {
    const living = instances.byIndex('server', name)
    const known = new Set(living.map(({ metadata }) => metadata.uid))
    return living.length + [...held].filter(([uid, on]) => on === name && !known.has(uid) && isThere(uid)).length
  }

  function freeOn(server: DatabaseServer): number {
    // A server above its capacity has no free slots, and takes none from other servers.
    return Math.max(0, server.spec.capacity - usedOn(server) - (discarded?.countOn(server.metadata.name) ?? 0))
  }

  /** Whether an instance exists. Frees the slot of one that was deleted unnoticed, as an instance without a finalizer may be. */
  function isThere(uid: string): boolean {
    const there = instances.byUid(uid) !== undefined
    if (!there) held.delete(uid)
    return there
  }

  function choose({ metadata, spec }: SharedInstance): DatabaseServer | undefined {
    const fits = servers
      .list()
      .filter(
        (server) => server.spec.region === spec.region && server.spec.motor === spec.motor && server.spec.tenancy === 'shared',
      )
      .filter((server) => isReady(server) && server.metadata.deletionTimestamp === undefined)
      .filter((server) => !retired.has(server.metadata.uid))
      .map((server) => ({ server, free: freeOn(server) }))
      .filter(({ free }) => free > 0)
      .sort((a, b) => a.free - b.free || a.server.metadata.name.localeCompare(b.server.metadata.name))
    const chosen = fits[0]?.server
    if (chosen) held.set(metadata.uid, chosen.metadata.name)
    return chosen
  }

  return {
    choose,
    hold: (uid, server) => void held.set(uid, server),
    release: (uid) => void held.delete(uid),
    has: (uid) => held.has(uid),
    of: (uid) => held.get(uid),
    freeOn,
    isEmpty: (server) => usedOn(server) === 0,
    retire({ metadata }) {
      for (const uid of retired) if (!servers.byUid(uid)) retired.delete(uid)
      retired.add(metadata.uid)
    },
  }
}

/** Findings of the watchdog that reconcilers handle, by uid. In memory only: the watchdog finds them again after a restart. */
export interface Suspicions {
  readonly oversize: Set<string>
  /** Instances whose database is missing in the engine's catalog. */
  readonly missing: Set<string>
  /** Instances whose login has another password than the Secret: the tenant changed it. */
  readonly password: Set<string>
  /** Instances whose database has other extensions than their status: the tenant dropped one. */
  readonly extensions: Set<string>
  /** Forgets instances that no longer exist. */
  prune(isThere: (uid: string) => boolean): void
}

export function createSuspicions(): Suspicions {
  const make = () => new Set<string>()
  const sets = { oversize: make(), missing: make(), password: make(), extensions: make() }
  return {
    ...sets,
    prune(isThere) {
      for (const seen of Object.values(sets)) for (const uid of seen) if (!isThere(uid)) seen.delete(uid)
    },
  }
}
