import type { Kind, Resource } from '../crds/kind.ts'
import { type Backoff, backoffMs, type Clock, pause, systemClock } from '../shared/timers.ts'
import { isStoreError, StoreCode, type ListOptions, type Store, type WatchEvent } from './port.ts'
import { isOlder } from './cache-view.ts'

/** Watch event of an object: not a bookmark. */
export type ObjectEvent<K extends Kind> = Exclude<WatchEvent<K>, { readonly type: 'bookmark' }>

export interface FollowDeps<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly scope?: ListOptions
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
  /** Called with all existing objects. Must not throw; `onEvent` must not throw either. */
  readonly onList: (items: readonly Resource<K>[]) => void
  readonly onEvent: (event: ObjectEvent<K>) => void
  readonly onError: (error: unknown) => void
}

type Step<K extends Kind> =
  { readonly type: 'listed'; readonly items: readonly Resource<K>[]; readonly resourceVersion: string } | WatchEvent<K>

const DEFAULT_BACKOFF: Backoff = { baseMs: 100, maxMs: 5_000 }

/**
 * Lists, then watches from the revision of the list, and repeats that until `signal` aborts; then resolves. Never rejects.
 *
 *     list ──► watch ──ends or fails──► back off ──► watch from the last revision seen
 *      ▲                                   │
 *      └─ revision is gone, or fails ◄─────┘
 *         before anything was seen
 */
export async function follow<K extends Kind>(deps: FollowDeps<K>, signal: AbortSignal): Promise<void> {
  const { backoff = DEFAULT_BACKOFF, clock = systemClock, random = Math.random } = deps
  let revision: string | undefined
  let failures = 0
  const stopped = () => signal.aborted

  function take(step: Step<K>): void {
    const seen = 'object' in step ? step.object.metadata.resourceVersion : step.resourceVersion
    if (step.type === 'listed') deps.onList(step.items)
    else {
      failures = 0
      if (step.type !== 'bookmark') deps.onEvent(step)
    }
    // The revision of a list always replaces the old one: a store restored from a backup continues at a lower revision.
    revision = step.type === 'listed' || revision === undefined || !isOlder(seen, revision) ? seen : revision
  }

  async function attempt(): Promise<void> {
    for await (const step of untilAborted(steps(deps, revision, signal), signal)) take(step)
  }

  while (!stopped()) {
    const [started, from] = [clock.now(), revision]
    try {
      await attempt()
    } catch (error) {
      if (stopped()) return
      deps.onError(error)
      revision = mayResume(error, revision !== from) ? revision : undefined
    }
    // A watch that ended after a long time did not fail.
    if (clock.now() - started >= backoff.maxMs) failures = 0
    failures += 1
    await pause(clock, backoffMs(backoff, failures, random), signal)
  }
}

/** Whether the next watch may start at the last revision. A watch that received no event may have failed because of its revision. */
function mayResume(error: unknown, sawSomething: boolean): boolean {
  if (isStoreError(error, StoreCode.gone)) return false
  return sawSomething || isStoreError(error, StoreCode.unavailable)
}

async function* steps<K extends Kind>(
  { store, kind, scope }: FollowDeps<K>,
  revision: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Step<K>> {
  let from = revision
  if (from === undefined) {
    const { items, resourceVersion } = await store.list(kind, scope)
    from = resourceVersion
    yield { type: 'listed', items, resourceVersion }
  }
  yield* store.watch(kind, { ...scope, resourceVersion: from, signal })
}

/**
 * Yields the values of `source` and ends as soon as `signal` aborts, even when the source hangs.
 * @throws errors of the source before the abort
 */
async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  // One listener for all iterations: Promise.race with one long-lived promise would keep the reactions of every iteration alive.
  let stop: () => void = () => undefined
  const onAbort = () => {
    stop()
  }
  signal.addEventListener('abort', onAbort)
  try {
    while (!signal.aborted) {
      const next = await new Promise<IteratorResult<T, unknown>>((resolve, reject) => {
        stop = () => {
          resolve({ done: true, value: undefined })
        }
        iterator.next().then(resolve, reject)
      })
      if (next.done) return
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that hangs in next() hangs in return() too.
    iterator.return?.().catch(() => undefined)
  }
}
