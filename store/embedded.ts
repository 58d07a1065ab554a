import { randomUUIDv7 } from 'node:crypto'
import { Namespace } from '../crds/core.ts'
import type { MooringError } from '../shared/errors.ts'
import { KINDS } from '../crds/index.ts'
import type { Draft, Kind, Resource } from '../crds/kind.ts'
import { openDatabase } from './embedded/database.ts'
import { contentsOf, createGarbageCollector } from './embedded/garbage-collection.ts'
import { loadTable } from './embedded/load.ts'
import { isSelected, type Stored, wholeSeconds } from './embedded/object.ts'
import { created, deleted, type Outcome, patched, replaced, requireMatch, statusPatched } from './embedded/operations.ts'
import type { Table } from './embedded/table.ts'
import { createWatchHub } from './embedded/watch-hub.ts'
import { createWriter } from './embedded/writer.ts'
import { StoreError } from './errors.ts'
import type { Key, ListOptions, ListResult, Patch, Preconditions, Store, WatchEvent, WatchOptions } from './port.ts'

/** The part of a logger (pino's, for one) that the store uses. No object's contents are ever logged. */
export interface StoreLogger {
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

export interface EmbeddedStoreOptions {
  /** The SQLite file; its directory must exist. Made with mode 0600. */
  readonly path: string
  readonly logger?: StoreLogger | undefined
  /** Events kept for watches that start in the past, of all kinds together. Default 10,000; none survives a restart. */
  readonly history?: number | undefined
  /** How often a watch that is up to date yields a bookmark. Default 15,000. */
  readonly bookmarkMs?: number | undefined
  /** Pause before clean-up that could not be written is tried again. Default 1,000. */
  readonly retryMs?: number | undefined
}

/** A Store in this process: memory over one SQLite file, which it owns alone until it is closed. */
export interface EmbeddedStore extends Store, AsyncDisposable {
  /**
   * Resolves when it is closed; with the reason when it lost the thread that writes. Reads go on then, but each write is `unavailable` for good:
   * only a new start, which reads the file anew, knows what of the last writes is in it.
   */
  readonly ended: Promise<MooringError | undefined>
  /** Transactions committed since it was opened: many writes may share one. */
  transactions(): number
  /** Forgets all events: a watch from a revision before now is `gone`. */
  compact(): void
  /** Waits until all accepted writes are durable, ends every watch (without an error) and gives the file back. */
  close(): Promise<void>
}

const typed = <K extends Kind>(object: Stored): Resource<K> => object as unknown as Resource<K>
const nameOf = ({ namespace, name }: Key): string => (namespace === undefined ? name : `${namespace}/${name}`)

/** @throws StoreError `not_found` */
function found(table: Table, kind: Kind, key: Key): Stored {
  const object = table.get(kind, key)
  if (!object) throw new StoreError('not_found', `${kind.kind} ${nameOf(key)} does not exist`)
  return object
}

/** @throws StoreError `not_found`, `forbidden` when nothing may be created in the namespace */
function admit(table: Table, namespace: string | undefined): void {
  if (namespace === undefined) return
  if (found(table, Namespace, { name: namespace }).metadata.deletionTimestamp !== undefined) {
    throw new StoreError('forbidden', `namespace ${namespace} is being deleted`)
  }
}

/** @throws StoreError `already_exists`, `not_found`, `forbidden` */
function accepted(table: Table, kind: Kind, outcome: Outcome): Outcome {
  const { metadata } = outcome.object
  admit(table, metadata.namespace)
  if (table.get(kind, metadata)) throw new StoreError('already_exists', `${kind.kind} ${nameOf(metadata)} exists already`)
  return outcome
}

/**
 * Opens the store of embedded mode. It keeps Kubernetes' semantics (conformance.ts); a write is checked against the newest
 * accepted state and seen by readers only when it is durable. A full disk fails writes with `unavailable`, nothing else, until there is room.
 * @throws MooringError `locked` when another process has the file open, `newer_layout`; StoreError `unavailable`
 */
export async function createEmbeddedStore(options: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const { path, logger, history = 10_000, bookmarkMs = 15_000, retryMs = 1_000 } = options
  const database = await openDatabase(path)
  const { table, changes } = loadTable(KINDS, database.contents, logger)
  const { revision } = database.contents
  const hub = createWatchHub({ revision, limit: history, bookmarkMs })
  const writer = createWriter({
    database,
    table,
    revision,
    observers: [(committed, newest) => hub.publish(committed, newest), (committed) => collector.observe(committed)],
    onObserverError: (error) => logger?.error({ err: error }, 'a write was done, and those who follow were not all told'),
    onFailure: (error, writes) => logger?.error({ err: error, writes }, 'writes failed: the state could not be written'),
  })
  const now = (): string => wholeSeconds(new Date())

  /** One write to an object that must be there and meet the preconditions. */
  function change(kind: Kind, key: Key, preconditions: Preconditions, decide: (current: Stored) => Outcome): Promise<Stored> {
    return writer.write(kind, (head) => {
      const current = found(head, kind, key)
      requireMatch(current, preconditions)
      return decide(current)
    })
  }
  const remove = (kind: Kind, key: Key, preconditions: Preconditions): Promise<Stored> =>
    change(kind, key, preconditions, (current) => deleted(kind, current, now()))

  const collector = createGarbageCollector({
    kinds: KINDS,
    head: writer.head,
    delete: remove,
    patch: (kind, key, patch, preconditions) => change(kind, key, preconditions, (current) => patched(kind, current, patch)),
    removeNamespace: ({ metadata: { name, uid } }) =>
      change(Namespace, { name }, { uid }, (object) => {
        const inUse = contentsOf(writer.head(), KINDS, name).length > 0 || object.metadata.finalizers !== undefined
        return { type: inUse ? 'none' : 'deleted', object }
      }),
    retryMs,
    onError: (error) => logger?.error({ err: error }, 'garbage collection failed'),
  })
  collector.observe(changes)

  let closing: Promise<void> | undefined
  async function shutDown(): Promise<void> {
    await collector.close()
    await writer.close()
    hub.close()
    await database.close()
  }
  const close = (): Promise<void> => (closing ??= shutDown())

  return {
    async get<K extends Kind>(kind: K, key: Key) {
      const object = writer.visible().get(kind, key)
      return object && typed<K>(object)
    },
    async list<K extends Kind>(kind: K, wanted: ListOptions = {}): Promise<ListResult<K>> {
      const objects = writer.visible().list(kind, wanted.namespace)
      const items = wanted.labels ? objects.filter((object) => isSelected(object, wanted)) : objects
      return { items: items.map(typed<K>), resourceVersion: String(writer.revision()) }
    },
    watch: <K extends Kind>(kind: K, wanted: WatchOptions) => hub.watch(kind, wanted) as unknown as AsyncIterable<WatchEvent<K>>,
    async create<K extends Kind>(kind: K, draft: Draft<K>) {
      const fresh = { uid: randomUUIDv7(), now: now() }
      return typed<K>(await writer.write(kind, (head) => accepted(head, kind, created(kind, draft, fresh))))
    },
    async replace<K extends Kind>(kind: K, object: Resource<K>) {
      return typed<K>(await change(kind, object.metadata, {}, (current) => replaced(kind, current, object)))
    },
    async mergePatch<K extends Kind>(kind: K, key: Key, patch: Patch, preconditions: Preconditions = {}) {
      return typed<K>(await change(kind, key, preconditions, (current) => patched(kind, current, patch)))
    },
    async patchStatus<K extends Kind>(kind: K, key: Key, status: object, preconditions: Preconditions = {}) {
      return typed<K>(await change(kind, key, preconditions, (current) => statusPatched(kind, current, status)))
    },
    async delete(kind, key, preconditions = {}) {
      await remove(kind, key, preconditions)
    },
    ended: database.ended,
    transactions: writer.transactions,
    compact: () => hub.compact(),
    close,
    [Symbol.asyncDispose]: close,
  }
}
