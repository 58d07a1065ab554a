import type { Kind, Resource } from '../crds/kind.ts'
import { type Backoff, backoffMs } from '../shared/backoff.ts'
import { type Clock, pause, systemClock } from './clock.ts'
import { isStoreError, StoreCode } from './errors.ts'
import type { ListOptions, Store, WatchEvent } from './port.ts'
import { isOlder } from './revision.ts'
import { untilAborted } from './until-aborted.ts'

/** A watch event that is about an object. */
export type ObjectEvent<K extends Kind> = Exclude<WatchEvent<K>, { readonly type: 'bookmark' }>

export interface FollowDeps<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly scope?: ListOptions
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
  /** All objects that there are now. Must not throw; neither must `onEvent`. */
  readonly onList: (items: readonly Resource<K>[]) => void
  readonly onEvent: (event: ObjectEvent<K>) => void
  readonly onError: (error: unknown) => void
}

type Step<K extends Kind> =
  { readonly type: 'listed'; readonly items: readonly Resource<K>[]; readonly resourceVersion: string } | WatchEvent<K>

const DEFAULT_BACKOFF: Backoff = { baseMs: 100, maxMs: 5_000 }

/**
 * Lists, then watches from there, again and again until `signal` aborts; then resolves. Never rejects.
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
    // A list counts whatever it says: a store that was restored from a backup begins again lower.
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
    // A watch that ended after a long quiet life did not fail.
    if (clock.now() - started >= backoff.maxMs) failures = 0
    failures += 1
    await pause(clock, backoffMs(backoff, failures, random), signal)
  }
}

/** Whether the next watch may start where this one failed. One that saw nothing may have failed because of its very revision. */
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
