import type { Kind } from '../../crds/kind.ts'
import { StoreError, type WatchOptions } from '../port.ts'
import { type Change, isSelected, kindId, type Stored } from './table.ts'

/** WatchEvent of the port, for an object of any kind. */
export type StoredEvent =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: Stored }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }

export interface WatchHub {
  /** Adds committed changes, in the order of their revisions, and wakes the watches. */
  publish(changes: readonly Change[], revision: number): void
  watch(kind: Kind, options: WatchOptions): AsyncGenerator<StoredEvent, void, undefined>
  /** Drops the history: every watch that is not up to date is `gone`. */
  compact(): void
  /** Ends every watch without an error. */
  close(): void
}

export interface WatchHubDeps {
  /** Revision before the first event of the history. */
  readonly revision: number
  /** Maximum number of events, for all kinds together. */
  readonly limit: number
  /** Interval of bookmarks of a watch that is up to date, in milliseconds. */
  readonly bookmarkMs: number
}

const gone = (): StoreError => new StoreError('gone', 'the revision is too old or not of this store: list again')

/** Returns the event of a change for a watch with these options: an object may also enter or leave the selection. */
function eventFor(change: Change, options: WatchOptions): StoredEvent | undefined {
  const { object, previous, type } = change
  const was = previous !== undefined && isSelected(previous, options)
  const is = type !== 'deleted' && isSelected(object, options)
  if (is) return { type: was ? 'modified' : 'added', object }
  if (!was) return undefined
  if (type === 'deleted') return { type, object }
  // Like Kubernetes: the last selected state, with the revision at which the object left the selection.
  const metadata = Object.freeze({ ...previous.metadata, resourceVersion: String(change.revision) })
  return { type: 'deleted', object: Object.freeze({ ...previous, metadata }) }
}

/**
 * Creates a bounded history that every watch reads at its own pace. A watch is a position in the history, so no event is lost between replay
 * and live events, and a slow reader costs no memory. A watch whose position is dropped gets `gone`.
 */
export function createWatchHub({ revision: start, limit, bookmarkMs }: WatchHubDeps): WatchHub {
  const history: Change[] = []
  /** Number of events dropped from the front of `history`. Positions count from the first event ever. */
  let dropped = 0
  let floor = start
  let revision = start
  let ticks = 0
  let closed = false
  const sleepers = new Set<() => void>()

  function wake(): void {
    for (const sleeper of sleepers) sleeper()
  }
  const timer = setInterval(() => {
    ticks += 1
    wake()
  }, bookmarkMs).unref()

  function drop(count: number): void {
    const last = history.splice(0, count).at(-1)
    if (!last) return
    dropped += count
    floor = last.revision
  }

  /** Returns the position of the first event after the revision. @throws StoreError `gone` */
  function positionAfter(text: string): number {
    const after = /^\d+$/.test(text) ? Number(text) : -1
    if (after < floor || after > revision) throw gone()
    let low = 0
    let high = history.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((history[middle]?.revision ?? 0) <= after) low = middle + 1
      else high = middle
    }
    return dropped + low
  }

  function sleep(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const sleeper = (): void => {
      sleepers.delete(sleeper)
      signal.removeEventListener('abort', sleeper)
      resolve(undefined)
    }
    sleepers.add(sleeper)
    signal.addEventListener('abort', sleeper)
    return promise
  }

  async function* watch(kind: Kind, options: WatchOptions): AsyncGenerator<StoredEvent, void, undefined> {
    const id = kindId(kind)
    let position = positionAfter(options.resourceVersion)
    let seenTicks = ticks
    while (!options.signal.aborted && !closed) {
      if (position < dropped) throw gone()
      const change = history[position - dropped]
      if (change) {
        position += 1
        const event = kindId(change.kind) === id ? eventFor(change, options) : undefined
        if (event) yield event
      } else if (seenTicks !== ticks) {
        seenTicks = ticks
        yield { type: 'bookmark', resourceVersion: String(revision) }
      } else {
        await sleep(options.signal)
      }
    }
  }

  return {
    publish(changes, newest) {
      for (const change of changes) history.push(change)
      revision = newest
      drop(Math.max(0, history.length - limit))
      wake()
    },
    watch,
    compact() {
      drop(history.length)
      floor = revision
    },
    close() {
      closed = true
      clearInterval(timer)
      wake()
    },
  }
}
