import type { Organization } from '../../../crds/organization.ts'
import { StoreCode, StoreError } from '../../../store/errors.ts'
import type { Store, WatchEvent, WatchOptions } from '../../../store/port.ts'
import { settle } from '../virtual-clock.ts'

type Event = WatchEvent<typeof Organization>

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
