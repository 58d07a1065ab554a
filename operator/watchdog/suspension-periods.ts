import { SharedInstance } from '../../crds/shared-instance.ts'
import { ignoringGone, keyOf, type Store } from '../../store/port.ts'

const MINUTE_MS = 60_000

/** Duration of the first suspension, of the second in succession, and so on. The last one applies to all further ones. */
const DURATIONS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS] as const
/** Time after a suspension after which the next one counts as the first again. */
const FORGOTTEN_MS = 24 * 60 * MINUTE_MS

export interface SuspensionPeriodsDeps {
  readonly store: Pick<Store, 'patchStatus'>
  /** Returns the instance of a tenant's name; undefined for a name without one. */
  readonly ownerOf: (name: string) => SharedInstance | undefined
  readonly now: () => Date
}

/** Starts a suspension of the tenants with these names. */
type SuspendForAWhile = (names: readonly string[]) => Promise<void>

/** Returns the suspension that follows the former one. Pure. */
function nextSuspension(
  former: NonNullable<SharedInstance['status']>['suspension'],
  now: Date,
): { readonly until: string; readonly count: number } {
  const isRecent = former !== undefined && now.getTime() - Date.parse(former.until) < FORGOTTEN_MS
  const count = isRecent ? former.count + 1 : 1
  const durationMs = DURATIONS_MS[Math.min(count, DURATIONS_MS.length) - 1] ?? 0
  return { until: new Date(now.getTime() + durationMs).toISOString(), count }
}

/**
 * Creates the suspension of tenants whose statement forces a restart of their server: with the end of the sessions alone, the tenant would log in
 * again and repeat the statement. The status of the instance has the suspension, so that a restart of the operator does not end it. The
 * instance's reconciler disables the login until then, on every engine.
 */
export function createSuspensionPeriods({ store, ownerOf, now }: SuspensionPeriodsDeps): SuspendForAWhile {
  async function suspend(instance: SharedInstance): Promise<void> {
    const suspension = nextSuspension(instance.status?.suspension, now())
    await ignoringGone(store.patchStatus(SharedInstance, keyOf(instance), { suspension }, { uid: instance.metadata.uid }))
  }

  return async function suspendForAWhile(names) {
    await Promise.all(names.flatMap((name) => ownerOf(name) ?? []).map(suspend))
  }
}
