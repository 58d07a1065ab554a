import { setImmediate } from 'node:timers/promises'
import type { Kind } from '../../crds/kind.ts'
import { deepFreeze } from '../deep-freeze.ts'
import { StoreError } from '../errors.ts'
import type { Database } from './database.ts'
import type { Batch, Row } from './messages.ts'
import { type Change, keyOf, kindId, type Stored } from './object.ts'
import type { Outcome } from './operations.ts'
import type { Table } from './table.ts'

/** A write whose outcome is decided, waiting to be durable. Without a change it only waits for those before it. */
interface Pending {
  readonly change: Change | undefined
  readonly done: PromiseWithResolvers<undefined>
}

export interface Writer {
  /** What is durable, and therefore what readers see. */
  readonly visible: () => Table
  /** What is accepted: the visible state and the writes on their way to the disk, which new ones are checked against. */
  readonly head: () => Table
  readonly revision: () => number
  /**
   * Decides on the head, at once, and resolves with the resulting object when it is durable.
   * @throws what `decide` throws, once the state it decided upon is durable; StoreError `unavailable` when that fails
   */
  write(kind: Kind, decide: (head: Table) => Outcome): Promise<Stored>
  /** Transactions committed so far. */
  readonly transactions: () => number
  /** Waits for what was accepted, then refuses all further writes. */
  close(): Promise<void>
}

export interface WriterDeps {
  readonly database: Pick<Database, 'commit'>
  readonly table: Table
  readonly revision: number
  /** Each is called after the changes of one transaction became visible. What one throws is reported, and neither undoes nor holds up anything. */
  readonly observers: readonly ((changes: readonly Change[], revision: number) => void)[]
  readonly onObserverError: (error: unknown) => void
  readonly onFailure: (error: unknown, writes: number) => void
}

const idOf = ({ kind, object }: Change): Omit<Row, 'body'> => ({
  kind: kindId(kind),
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
})

/** Of several changes of one object only the last is worth a row. */
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

/** Group commit: all writes that wait while one transaction is on its way to the disk share the next one and its fsync. */
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
    for (const observe of observers) tell(() => observe(changes, newest))
  }

  function tell(observe: () => void): void {
    try {
      observe()
    } catch (error) {
      onObserverError(error)
    }
  }

  /** Later writes were decided on top of the ones that failed, so they fail along with them. */
  function fail(batch: readonly Pending[], cause: unknown): void {
    const failed = [...batch, ...pending]
    pending = []
    head = visible.clone()
    headRevision = durableRevision
    onFailure(cause, failed.length)
    for (const { done } of failed) done.reject(new StoreError('unavailable', 'the state cannot be written now', { cause }))
  }

  async function drain(): Promise<void> {
    // Lets every write of this turn of the event loop into the first transaction.
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
      // The writers that were just answered often write again: they get into the next transaction together.
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
        // "Not found" must not be said on the strength of a deletion that may yet fail.
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
