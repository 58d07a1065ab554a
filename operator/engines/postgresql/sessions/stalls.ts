/** Time without a failed lock after which earlier failures no longer count, in ms. */
const LOCKS_CALM_MS = 60_000

/** Reason why a database cannot be removed yet: a session in it, or something of any tenant. */
export type StallCause = 'own' | 'others'

/** Work of the administrator on one server that sessions of tenants keep from being done, with the time since when. */
export interface Stalls {
  /** Records that the removal of a closed database was not done. */
  removalStalled(name: string, cause: StallCause): void
  removalDone(name: string): void
  /** Records that a statement did not get its lock within the bound. */
  lockFailed(): void
  /** Returns the time in ms for which the oldest work has been stalled by this cause; 0 for none. */
  lastedMs(cause: StallCause): number
}

export function createStalls(now: () => number = () => performance.now()): Stalls {
  const removals = new Map<string, { readonly since: number; readonly cause: StallCause }>()
  let locks: { readonly first: number; readonly last: number } | undefined

  return {
    removalStalled(name, cause) {
      const known = removals.get(name)
      removals.set(name, { since: known?.cause === cause ? known.since : now(), cause })
    },
    removalDone: (name) => void removals.delete(name),
    lockFailed() {
      const last = now()
      locks = { first: locks && last - locks.last < LOCKS_CALM_MS ? locks.first : last, last }
    },
    lastedMs(cause) {
      const starts = [...removals.values()].filter((stall) => stall.cause === cause).map(({ since }) => since)
      if (cause === 'others' && locks && now() - locks.last < LOCKS_CALM_MS) starts.push(locks.first)
      return starts.length === 0 ? 0 : now() - Math.min(...starts)
    },
  }
}
