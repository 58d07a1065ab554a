/** A client that is to go. */
export interface Leaver {
  /** Channels that visitors use. */
  readonly busy: boolean
  /** No visitor is led to it any more; those who are there stay. */
  retire(): void
  /** Tells it to go. */
  dismiss(): void
}

export interface DrainPlan {
  /** In which all are retired, one after the other: they come back somewhere, and not all at once. At the most. */
  readonly overMs: number
  /** How long a visitor's request under way is waited for, from then on. */
  readonly patienceMs: number
}

const STEP_MS = 50

/** Has all go. Resolves when the last was told to. */
export function drainEvenly(leavers: readonly Leaver[], { overMs, patienceMs }: DrainPlan): Promise<void> {
  const began = performance.now()
  const waiting = [...leavers]
  const retired = new Map<Leaver, number>()

  function step(): void {
    const now = performance.now()
    const share = overMs <= 0 ? 1 : Math.min(1, (now - began + STEP_MS) / overMs)
    const due = waiting.splice(0, Math.ceil(share * leavers.length) - (leavers.length - waiting.length))
    for (const leaver of due) {
      leaver.retire()
      retired.set(leaver, now)
    }
    for (const [leaver, since] of retired) {
      if (leaver.busy && now - since < patienceMs) continue
      retired.delete(leaver)
      leaver.dismiss()
    }
  }

  return new Promise((resolve) => {
    const timer = setInterval(round, STEP_MS)
    function round(): void {
      step()
      if (waiting.length + retired.size > 0) return
      clearInterval(timer)
      resolve()
    }
    round()
  })
}
