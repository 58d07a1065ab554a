import type { DatabaseServer } from '../../crds/database-server.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'

export interface PlacesDeps {
  readonly servers: Cache<typeof DatabaseServer>
  /** With the indexes of indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
}

/** Which server has room. Between the choice and the status that records it, a place is held here, by uid. */
export interface Places {
  /** A ready server of the instance's region and motor with a free place, the fullest first; the place is held from now on. */
  choose(instance: SharedInstance): DatabaseServer | undefined
  /** Holds a place on a server that was chosen before, e.g. by a former process. */
  hold(uid: string, server: string): void
  release(uid: string): void
  has(uid: string): boolean
  /** The server on which a place is held. */
  of(uid: string): string | undefined
  freeOn(server: DatabaseServer): number
}

export function createPlaces({ servers, instances }: PlacesDeps): Places {
  const held = new Map<string, string>()

  function freeOn(server: DatabaseServer): number {
    const name = server.metadata.name
    const living = instances.byIndex('server', name)
    const known = new Set(living.map(({ metadata }) => metadata.uid))
    const coming = [...held].filter(([uid, on]) => on === name && !known.has(uid) && isThere(uid)).length
    // One that holds too many takes nothing away from the others.
    return Math.max(0, server.spec.capacity - living.length - coming)
  }

  /** One that went without being seen to go, as one without a finalizer may, gives its place back here. */
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
  }
}
