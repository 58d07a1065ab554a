/** What the watchdog and the sweeper saw on the servers and the reconciler decides about, by uid. Held in memory: both look again. */
export interface Suspicions {
  readonly oversize: Set<string>
  /** Its database was not in the engine's catalog. */
  readonly missing: Set<string>
}

export function createSuspicions(): Suspicions {
  return { oversize: new Set(), missing: new Set() }
}
