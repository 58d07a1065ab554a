/** Findings of the watchdog that reconcilers handle, by uid. In memory only: the watchdog finds them again after a restart. */
export interface Suspicions {
  readonly oversize: Set<string>
  /** Instances whose database is missing in the engine's catalog. */
  readonly missing: Set<string>
  /** Instances whose login has another password than the Secret: the tenant changed it. */
  readonly password: Set<string>
  /** Instances whose database lacks an installed extension: the tenant dropped it. */
  readonly extensions: Set<string>
  /** Forgets instances that no longer exist. */
  prune(isThere: (uid: string) => boolean): void
}

export function createSuspicions(): Suspicions {
  const make = () => new Set<string>()
  const sets = { oversize: make(), missing: make(), password: make(), extensions: make() }
  return {
    ...sets,
    prune(isThere) {
      for (const seen of Object.values(sets)) for (const uid of seen) if (!isThere(uid)) seen.delete(uid)
    },
  }
}
