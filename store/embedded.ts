import { randomUUIDv7 } from 'node:crypto'
import { Namespace } from '../crds/core.ts'
import type { MooringError } from '../shared/errors.ts'
import { KINDS } from '../crds/index.ts'
import type { Draft, Kind, Resource } from '../crds/kind.ts'
import { openDatabase } from './embedded/database.ts'
import { contentsOf, createGarbageCollector } from './embedded/garbage-collection.ts'
import { loadTable, isSelected, type Stored, wholeSeconds, type Table } from './embedded/table.ts'
import { created, deleted, type Outcome, patched, replaced, requireMatch, statusPatched } from './embedded/operations.ts'
import { createWatchHub } from './embedded/watch-hub.ts'
import { createWriter } from './embedded/writer.ts'
import {
  keyToString,
  StoreError,
  type Key,
  type ListOptions,
  type ListResult,
  type Patch,
  type Preconditions,
  type Store,
  type WatchEvent,
  type WatchOptions,
} from './port.ts'

/** Logger methods that the store uses. The store never logs contents of objects. */
export interface StoreLogger {
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

export interface EmbeddedStoreOptions {
  /** Path of the SQLite file, which is created with mode 0600. Its directory must exist. */
  readonly path: string
  readonly logger?: StoreLogger | undefined
  /** Number of events kept for watches that start in the past, for all kinds together. Default 10,000. Events do not survive a restart. */
  readonly history?: number | undefined
  /** Interval of bookmarks of a watch that is up to date, in milliseconds. Default 15,000. */
  readonly bookmarkMs?: number | undefined
  /** Delay before failed clean-up is retried, in milliseconds. Default 1,000. */
  readonly retryMs?: number | undefined
}

/** Store in this process: memory over one SQLite file, which is locked until the store is closed. */
export interface EmbeddedStore extends Store, AsyncDisposable {
  /**
   * Resolves when the store is closed, or with an error when its writer thread has exited. After such an error reads still work, but every
   * write is `unavailable`: only a restart, which reads the file again, shows which of the last writes are in it.
   */
  readonly ended: Promise<MooringError | undefined>
  /** Returns the number of transactions committed since the store was opened. Many writes may share one. */
  transactions(): number
  /** Drops all events: a watch from an earlier revision is `gone`. */
  compact(): void
  /** Waits until all accepted writes are durable, ends every watch without an error, and unlocks the file. */
  close(): Promise<void>
}

const typed = <K extends Kind>(object: Stored): Resource<K> => object as unknown as Resource<K>

/** Returns an object of the table. @throws StoreError `not_found` */
function found(table: Table, kind: Kind, key: Key): Stored {
  const object = table.get(kind, key)
  if (!object) throw new StoreError('not_found', `${kind.kind} ${keyToString(key)} does not exist`)
  return object
}

/** Checks that objects may be created in the namespace. @throws StoreError `not_found`, `forbidden` while the namespace is being deleted */
function requireNamespace(table: Table, namespace: string | undefined): void {
  if (namespace === undefined) return
  if (found(table, Namespace, { name: namespace }).metadata.deletionTimestamp !== undefined) {
    throw new StoreError('forbidden', `namespace ${namespace} is being deleted`)
  }
}

/** Returns the outcome of a creation. @throws StoreError `already_exists`, `not_found`, `forbidden` */
function creatable(table: Table, kind: Kind, outcome: Outcome): Outcome {
  const { metadata } = outcome.object
  requireNamespace(table, metadata.namespace)
  if (table.get(kind, metadata)) throw new StoreError('already_exists', `${kind.kind} ${keyToString(metadata)} exists already`)
  return outcome
}

/**
 * Opens the store of embedded mode. It has Kubernetes' semantics (test/conformance/store). A write is checked against the newest
 * accepted state, and readers see it only when it is durable. On a full disk writes fail with `unavailable`; reads still work.
 * @throws MooringError `locked` when another process has the file open, `newer_layout`; StoreError `unavailable`
 */
export async function createEmbeddedStore(settings: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const { path, logger, history = 10_000, bookmarkMs = 15_000, retryMs = 1_000 } = settings
  const database = await openDatabase(path)
  const { table, changes } = loadTable(KINDS, database.contents, logger)
  const { revision } = database.contents
  const hub = createWatchHub({ revision, limit: history, bookmarkMs })
  const writer = createWriter({
    database,
    table,
    revision,
    observers: [(committed, newest) => hub.publish(committed, newest), (committed) => collector.observe(committed)],
    onObserverError: (error) => logger?.error({ err: error }, 'an observer of a committed write failed'),
    onFailure: (error, writes) => logger?.error({ err: error, writes }, 'writes failed: the state could not be written'),
  })
  const now = (): string => wholeSeconds(new Date())

  /** Writes an object that must exist and meet the preconditions. */
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
    async list<K extends Kind>(kind: K, options: ListOptions = {}): Promise<ListResult<K>> {
      const objects = writer.visible().list(kind, options.namespace)
      const items = options.labels ? objects.filter((object) => isSelected(object, options)) : objects
      return { items: items.map(typed<K>), resourceVersion: String(writer.revision()) }
    },
    watch: <K extends Kind>(kind: K, options: WatchOptions) =>
      hub.watch(kind, options) as unknown as AsyncIterable<WatchEvent<K>>,
    async create<K extends Kind>(kind: K, draft: Draft<K>) {
      const fresh = { uid: randomUUIDv7(), now: now() }
      return typed<K>(await writer.write(kind, (head) => creatable(head, kind, created(kind, draft, fresh))))
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
