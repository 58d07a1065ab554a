/** Spreads the starts of many tasks over time. */
export interface Pace {
  /** Returns the time until the task may start, in milliseconds; 0 or less when it may. The first call reserves its turn. */
  readonly waitMs: (task: string) => number
  /** Forgets a task that has ended or is not needed. */
  readonly leave: (task: string) => void
}

/** Creates a pace at which a task starts `everyMs` milliseconds after the one before it. */
export function createPace({ everyMs, now }: { readonly everyMs: number; readonly now: () => number }): Pace {
  const starts = new Map<string, number>()
  let last = -Infinity

  return {
    waitMs(task) {
      const longestMs = (starts.size + 1) * everyMs
      // Reserved before the clock was set back.
      if (last - now() > longestMs) last = -Infinity
      const known = starts.get(task)
      const start = known !== undefined && known - now() <= longestMs ? known : Math.max(now(), last + everyMs)
      starts.set(task, start)
      last = Math.max(last, start)
      return start - now()
    },
    leave: (task) => void starts.delete(task),
  }
}
