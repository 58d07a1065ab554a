/** What the watchdog saw on the servers and the reconciler decides about, by uid. Held in memory: the watchdog looks again after a restart. */
export interface Suspicions {
  readonly oversize: Set<string>
  /** The database was not in the engine's catalog. */
  readonly missing: Set<string>
  /** The login has another password than the Secret: the tenant changed it. */
  readonly password: Set<string>
  /** The database lacks an extension that was installed: the tenant dropped it. */
  readonly extensions: Set<string>
  /** Forgets the instances that do not exist any more. */
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
