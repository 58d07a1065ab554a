/** What the watchdog and the sweeper saw on the servers and the reconciler decides about, by uid. Held in memory: both look again. */
export interface Suspicions {
  readonly oversize: Set<string>
  /** Its database was not in the engine's catalog. */
  readonly missing: Set<string>
  /** Forgets those of which nobody is there any more. */
  prune(isThere: (uid: string) => boolean): void
}

export function createSuspicions(): Suspicions {
  const [oversize, missing] = [new Set<string>(), new Set<string>()]
  return {
    ...{ oversize, missing },
    prune(isThere) {
      for (const seen of [oversize, missing]) for (const uid of seen) if (!isThere(uid)) seen.delete(uid)
    },
  }
}
