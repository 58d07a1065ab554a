import { setImmediate } from 'node:timers/promises'
import type { Kind } from '../../crds/kind.ts'
import { keyOf, deepFreeze, StoreError } from '../port.ts'
import type { Database } from './database.ts'
import type { Batch, Row } from './sqlite.ts'
import { type Change, kindId, type Stored, type Table } from './table.ts'
import type { Outcome } from './operations.ts'

/** Write whose outcome is decided and that waits to be durable. Without a change it waits only for the writes before it. */
interface Pending {
  readonly change: Change | undefined
  readonly done: PromiseWithResolvers<undefined>
}

export interface Writer {
  /** Durable state, which readers see. */
  readonly visible: () => Table
  /** Accepted state: the durable state with the writes that are not durable yet. New writes are checked against it. */
  readonly head: () => Table
  readonly revision: () => number
  /**
   * Calls `decide` with the head at once, and resolves with the resulting object when it is durable.
   * @throws the error of `decide`, once the head that it saw is durable; StoreError `unavailable` when that commit fails
   */
  write(kind: Kind, decide: (head: Table) => Outcome): Promise<Stored>
  /** Number of committed transactions. */
  readonly transactions: () => number
  /** Rejects new writes, and waits for accepted ones. */
  close(): Promise<void>
}

export interface WriterDeps {
  readonly database: Pick<Database, 'commit'>
  readonly table: Table
  readonly revision: number
  /** Called after the changes of a transaction have become visible. Errors of an observer are reported and have no other effect. */
  readonly observers: readonly ((changes: readonly Change[], revision: number) => void)[]
  readonly onObserverError: (error: unknown) => void
  readonly onFailure: (error: unknown, writes: number) => void
}

const idOf = ({ kind, object }: Change): Omit<Row, 'body'> => ({
  kind: kindId(kind),
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
})

/** Builds the batch of some changes; of several changes of one object, it has only the last. */
function batchOf(changes: readonly Change[], revision: number): Batch {
  const last = new Map(changes.map((change) => [Object.values(idOf(change)).join('/'), change]))
  const puts: Row[] = []
  const removes: Omit<Row, 'body'>[] = []
  for (const change of last.values()) {
    if (change.type === 'deleted') removes.push(idOf(change))
    else puts.push({ ...idOf(change), body: JSON.stringify(change.object) })
  }
  return { revision, puts, removes }
}

function apply(table: Table, { type, kind, object }: Change): void {
  if (type === 'deleted') table.remove(kind, keyOf(object))
  else table.put(kind, object)
}

/** Creates a writer with group commit: all writes that arrive during one transaction share the next one and its fsync. */
export function createWriter({ database, table, revision, observers, onObserverError, onFailure }: WriterDeps): Writer {
  const visible = table
  let head = table.clone()
  let durableRevision = revision
  let headRevision = revision
  let pending: Pending[] = []
  let running: Promise<void> | undefined
  let transactions = 0
  let closed = false

  function accept(kind: Kind, { type, object }: Outcome): Change | undefined {
    if (type === 'none') return undefined
    headRevision += 1
    const previous = head.get(kind, keyOf(object))
    const stamped = deepFreeze({ ...object, metadata: { ...object.metadata, resourceVersion: String(headRevision) } })
    const change: Change = { kind, type, object: stamped, previous, revision: headRevision }
    apply(head, change)
    return change
  }

  async function commit(batch: readonly Pending[]): Promise<void> {
    const changes = batch.flatMap(({ change }) => change ?? [])
    if (changes.length === 0) return
    const newest = changes.at(-1)?.revision ?? durableRevision
    await database.commit(batchOf(changes, newest))
    transactions += 1
    for (const change of changes) apply(visible, change)
    durableRevision = newest
    for (const observe of observers) notify(() => observe(changes, newest))
  }

  function notify(observe: () => void): void {
    try {
      observe()
    } catch (error) {
      onObserverError(error)
    }
  }

  /** Fails a batch and the writes behind it, which were decided on top of the batch. */
  function fail(batch: readonly Pending[], cause: unknown): void {
    const failed = [...batch, ...pending]
    pending = []
    head = visible.clone()
    headRevision = durableRevision
    onFailure(cause, failed.length)
    for (const { done } of failed) done.reject(new StoreError('unavailable', 'the state cannot be written at present', { cause }))
  }

  async function drain(): Promise<void> {
    // Collects all writes of this turn of the event loop in the first transaction.
    await setImmediate()
    while (pending.length > 0) {
      const batch = pending
      pending = []
      try {
        await commit(batch)
        for (const { done } of batch) done.resolve(undefined)
      } catch (error) {
        fail(batch, error)
      }
      // Callers whose write was committed often write again at once: their writes share the next transaction.
      await setImmediate()
    }
    running = undefined
  }

  function durable(change: Change | undefined): Promise<undefined> {
    if (!change && headRevision === durableRevision) return Promise.resolve(undefined)
    const done = Promise.withResolvers<undefined>()
    pending.push({ change, done })
    running ??= drain()
    return done.promise
  }

  return {
    visible: () => visible,
    head: () => head,
    revision: () => durableRevision,
    transactions: () => transactions,
    async write(kind, decide) {
      if (closed) throw new StoreError('unavailable', 'the store is closed')
      let outcome: Outcome
      try {
        outcome = decide(head)
      } catch (error) {
        // A deletion that causes "not found" may still fail: the error waits until that deletion is durable.
        if (error instanceof StoreError) await durable(undefined)
        throw error
      }
      const change = accept(kind, outcome)
      await durable(change)
      return change?.object ?? outcome.object
    },
    async close() {
      closed = true
      await running
    },
  }
}
