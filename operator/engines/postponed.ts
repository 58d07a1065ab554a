/** Leftovers of one server whose removal is tried again later. */
export interface Postponed {
  /** Returns the names that may be tried now, first the one that was not tried for the longest time. Forgets those that are not in `all`. */
  due(all: readonly string[]): readonly string[]
  /** `ms`: time until the name is due again. Default: that of all. */
  postpone(name: string, ms?: number): void
}

/** Creates a list without names. `usualMs`: time until a postponed name is due again. */
export function createPostponed(usualMs: number): Postponed {
  /** Times before which a name is not due, in ms of `performance.now()`. */
  const times = new Map<string, number>()
  const until = (name: string): number => times.get(name) ?? 0

  return {
    due(all) {
      const now = performance.now()
      for (const name of times.keys()) if (!all.includes(name)) times.delete(name)
      return all.filter((name) => until(name) <= now).toSorted((a, b) => until(a) - until(b))
    },
    postpone(name, ms = usualMs) {
      times.set(name, performance.now() + ms)
    },
  }
}
