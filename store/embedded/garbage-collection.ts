import { Namespace } from '../../crds/core.ts'
import { apiVersionOf, type Kind, type OwnerReference } from '../../crds/kind.ts'
import { keyOf, isStoreError, type Key, type Patch, type Preconditions } from '../port.ts'
import { type Change, kindId, type Stored, type Table } from './table.ts'

/** Object in the work set. */
interface Ref {
  readonly kind: Kind
  readonly key: Key
}

export interface GarbageCollector {
  /** Queues work for the changes of a transaction. */
  observe(changes: readonly Change[]): void
  /** Stops, and waits for work in progress. */
  close(): Promise<void>
}

export interface GarbageCollectorDeps {
  readonly kinds: readonly Kind[]
  readonly head: () => Table
  readonly delete: (kind: Kind, key: Key, preconditions: Preconditions) => Promise<unknown>
  readonly patch: (kind: Kind, key: Key, patch: Patch, preconditions: Preconditions) => Promise<unknown>
  /** Removes a Namespace that is being deleted, if it is empty and has no finalizers. */
  readonly removeNamespace: (namespace: Stored) => Promise<unknown>
  /** Delay before failed work is retried, in milliseconds. */
  readonly retryMs: number
  readonly onError: (error: unknown) => void
}

const idOf = ({ kind, key }: Ref): string => `${kindId(kind)}/${key.namespace ?? ''}/${key.name}`
const exactly = ({ metadata }: Stored): Preconditions => ({ uid: metadata.uid, resourceVersion: metadata.resourceVersion })

/** Returns all objects of a namespace, of every kind. */
export function contentsOf(table: Table, kinds: readonly Kind[], namespace: string): (Ref & { readonly object: Stored })[] {
  return kinds
    .filter((kind) => kind.namespaced)
    .flatMap((kind) => table.list(kind, namespace).map((object) => ({ kind, key: keyOf(object), object })))
}

/**
 * Creates the garbage collector. It deletes dependants whose owners are all gone, the objects in a Namespace that is being deleted, and then
 * the Namespace itself. Level-triggered: it queues keys, and decides on the newest state each time.
 */
export function createGarbageCollector(deps: GarbageCollectorDeps): GarbageCollector {
  const { kinds, head } = deps
  const dependants = new Map<string, Map<string, Ref>>()
  const work = new Map<string, Ref>()
  /** Failed work, until the next attempt. */
  const failed = new Map<string, Ref>()
  let running: Promise<void> | undefined
  let retry: NodeJS.Timeout | undefined
  let closed = false

  function index(ref: Ref, { metadata }: Stored, act: 'link' | 'unlink'): void {
    for (const { uid } of metadata.ownerReferences ?? []) {
      const refs = dependants.get(uid) ?? new Map<string, Ref>()
      if (act === 'link') refs.set(idOf(ref), ref)
      else refs.delete(idOf(ref))
      if (refs.size > 0) dependants.set(uid, refs)
      else dependants.delete(uid)
    }
  }

  function enqueue(refs: Iterable<Ref>): void {
    for (const ref of refs) work.set(idOf(ref), ref)
  }

  function track({ kind, type, object, previous }: Change): void {
    const ref = { kind, key: keyOf(object) }
    if (previous) index(ref, previous, 'unlink')
    if (type === 'deleted') {
      enqueue(dependants.get(object.metadata.uid)?.values() ?? [])
      if (object.metadata.namespace !== undefined) enqueue([{ kind: Namespace, key: { name: object.metadata.namespace } }])
      return
    }
    index(ref, object, 'link')
    if (object.metadata.ownerReferences || kind === Namespace) enqueue([ref])
  }

  /** Whether an owner exists. An owner of an unknown kind counts as existing. */
  function exists(owner: OwnerReference, namespace: string | undefined): boolean {
    const kind = kinds.find((each) => each.kind === owner.kind && apiVersionOf(each) === owner.apiVersion)
    if (!kind) return true
    return head().get(kind, { namespace: kind.namespaced ? namespace : undefined, name: owner.name })?.metadata.uid === owner.uid
  }

  async function collectOrphan({ kind, key }: Ref, object: Stored): Promise<void> {
    const owners = object.metadata.ownerReferences ?? []
    const left = owners.filter((owner) => exists(owner, object.metadata.namespace))
    if (left.length === owners.length || object.metadata.deletionTimestamp !== undefined) return
    if (left.length === 0) await deps.delete(kind, key, exactly(object))
    else await deps.patch(kind, key, { metadata: { ownerReferences: left } }, exactly(object))
  }

  async function emptyNamespace(namespace: Stored): Promise<void> {
    if (namespace.metadata.deletionTimestamp === undefined) return
    const contents = contentsOf(head(), kinds, namespace.metadata.name)
    const untouched = contents.filter(({ object }) => object.metadata.deletionTimestamp === undefined)
    await Promise.all(untouched.map(({ kind, key, object }) => settle({ kind, key }, deps.delete(kind, key, exactly(object)))))
    await deps.removeNamespace(namespace)
  }

  /** Handles errors of a write. A conflict or a missing object reaches `observe` as a change; other failures are retried. */
  async function settle(ref: Ref, act: Promise<unknown>): Promise<void> {
    try {
      await act
    } catch (error) {
      if (isStoreError(error, 'conflict') || isStoreError(error, 'not_found')) return
      if (!isStoreError(error, 'unavailable')) deps.onError(error)
      failed.set(idOf(ref), ref)
    }
  }

  async function reconcile(ref: Ref): Promise<void> {
    const object = head().get(ref.kind, ref.key)
    if (!object) return
    await settle(ref, collectOrphan(ref, object))
    if (ref.kind === Namespace) await settle(ref, emptyNamespace(object))
  }

  async function run(): Promise<void> {
    while (work.size > 0 && !closed) {
      const refs = [...work.values()]
      work.clear()
      await Promise.all(refs.map(reconcile))
    }
    running = undefined
    if (failed.size > 0) retry ??= setTimeout(retryFailed, deps.retryMs).unref()
  }

  function retryFailed(): void {
    retry = undefined
    enqueue(failed.values())
    failed.clear()
    start()
  }

  function start(): void {
    if (!closed && work.size > 0) running ??= run()
  }

  return {
    observe(changes) {
      for (const change of changes) track(change)
      start()
    },
    async close() {
      closed = true
      clearTimeout(retry)
      await running
    },
  }
}
