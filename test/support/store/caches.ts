import { Organization } from '../../../crds/organization.ts'
import { type Cache, type CacheDeps, createCache } from '../../../store/cache.ts'
import { type Key, keyOf, type Store, type WatchEvent, type WatchOptions, StoreCode, StoreError } from '../../../store/port.ts'
import { createVirtualClock, type VirtualClock, settle } from '../clocks.ts'
import type { Kind, Resource } from '../../../crds/kind.ts'
import { createCacheView, type Indexes } from '../../../store/cache-view.ts'

/** Cache in virtual time, and the errors of its watch. */
export interface RunningCache extends AsyncDisposable {
  readonly cache: Cache<typeof Organization>
  readonly clock: VirtualClock
  readonly errors: unknown[]
}

/** Runs a cache over `store` in virtual time until disposed. */
export function startCache(store: Store, options: Partial<CacheDeps<typeof Organization>> = {}): RunningCache {
  const clock = createVirtualClock()
  const errors: unknown[] = []
  const stop = new AbortController()
  const onError = (error: unknown) => {
    errors.push(error)
  }
  const cache = createCache({ store, kind: Organization, clock, random: () => 0.5, onError, ...options })
  const ended = cache.run(stop.signal)
  const dispose = async () => {
    stop.abort()
    await ended
  }
  return { cache, clock, errors, [Symbol.asyncDispose]: dispose }
}

type Event = WatchEvent<typeof Organization>

/** Store of {@link createScriptedStore}. */
export type ScriptedStore = ReturnType<typeof createScriptedStore>

/** Creates a store of organizations in memory, whose lists and watches fail and end on demand. */
export function createScriptedStore() {
  const objects = new Map<string, Organization>()
  const log: { revision: number; event: Event }[] = []
  const calls = { lists: 0, watches: 0 }
  const watchedFrom: string[] = []
  const broken = { lists: 0, watches: 0 }
  let revision = 10
  let compacted = 10
  let wake = Promise.withResolvers<undefined>()
  let fault: 'end' | StoreError | undefined

  function ring(): void {
    wake.resolve(undefined)
    wake = Promise.withResolvers()
  }

  function record(type: 'added' | 'modified' | 'deleted', object: Organization): void {
    log.push({ revision, event: { type, object } })
    ring()
  }

  function put(name: string): void {
    revision += 1
    const old = objects.get(name)
    const object = organization(name, old?.metadata.uid ?? `uid-${revision}`, revision)
    objects.set(name, object)
    record(old ? 'modified' : 'added', object)
  }

  function remove(name: string): void {
    const old = objects.get(name)
    if (!old) return
    revision += 1
    objects.delete(name)
    record('deleted', organization(name, old.metadata.uid, revision))
  }

  async function* watch({ resourceVersion, signal }: WatchOptions): AsyncGenerator<Event> {
    calls.watches += 1
    watchedFrom.push(resourceVersion)
    if (takeOne(broken, 'watches')) throw new StoreError(StoreCode.unavailable, 'no watch')
    let seen = Number(resourceVersion)
    for (;;) {
      if (seen < compacted) throw new StoreError(StoreCode.gone, 'compacted')
      for (const { revision: at, event } of log.filter((entry) => entry.revision > seen)) {
        seen = at
        yield event
      }
      // Events that arrived while the last one was delivered.
      if (seen < compacted || log.some((entry) => entry.revision > seen)) continue
      await Promise.race([wake.promise, aborted(signal)])
      if (signal.aborted || fault === 'end') return
      if (fault instanceof StoreError) throw fault
    }
  }

  const store = {
    list: async () => {
      calls.lists += 1
      if (takeOne(broken, 'lists')) throw new StoreError(StoreCode.unavailable, 'no list')
      return { items: [...objects.values()], resourceVersion: String(revision) }
    },
    watch: (_: unknown, options: WatchOptions) => watch(options),
  }

  return {
    store: store as unknown as Store,
    calls,
    /** Revisions from which watches were opened. */
    watchedFrom,
    broken,
    put,
    remove,
    objects,
    /** Puts an event into the watch, independent of the stored objects. */
    emit: (event: Event) => {
      revision += 1
      log.push({ revision, event })
      ring()
    },
    compact: () => {
      compacted = revision
      log.length = 0
    },
    /** Ends all open watches with this error. */
    strike: async (what: 'end' | StoreError) => {
      fault = what
      ring()
      await settle()
      fault = undefined
    },
  }
}

function takeOne(counter: { lists: number; watches: number }, what: 'lists' | 'watches'): boolean {
  if (counter[what] === 0) return false
  counter[what] -= 1
  return true
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Returns an organization at a revision. */
export function organization(name: string, uid: string, revision: number | string): Organization {
  const resourceVersion = String(revision)
  const metadata = { name, uid, resourceVersion, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
  return { apiVersion: 'mooring.dev/v1alpha1', kind: 'Organization', metadata, spec: { name: `${name} ${resourceVersion}` } }
}

/** Cache and the functions that change its content. */
export interface SettableCache<K extends Kind> {
  readonly cache: Cache<K>
  put(...objects: readonly Resource<K>[]): void
  remove(object: Resource<K>): void
}

/** Creates a cache whose content a test sets, for code that reads a cache without waiting. */
export function settableCache<K extends Kind>(kind: K, indexes?: Indexes<K>): SettableCache<K> {
  const view = createCacheView(indexes)
  const listeners = new Set<(changed: Key) => void>()
  const notify = (object: Resource<K>) => listeners.forEach((listener) => listener(keyOf(object)))
  return {
    put: (...objects) => {
      for (const object of objects) {
        view.put(object)
        notify(object)
      }
    },
    remove: (object) => {
      view.remove(object)
      notify(object)
    },
    cache: {
      kind,
      run: () => Promise.resolve(),
      synced: () => Promise.resolve(),
      get: (key) => view.get(key),
      byUid: (uid) => view.byUid(uid),
      list: (options = {}) => view.list(options),
      byIndex: (index, value) => view.byIndex(index, value),
      count: (options = {}) => view.count(options),
      countByIndex: (index, value) => view.countByIndex(index, value),
      onChange: (listener) => {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      waitFor: () => Promise.reject(new Error('a settable cache does not wait')),
    },
  }
}
