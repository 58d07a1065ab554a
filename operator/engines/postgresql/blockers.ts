/** Time that a statement of the administrator runs before its blockers are looked for, in ms. */
const PATIENCE_MS = 150
/** Interval at which they are looked for from then on, in ms. */
const EVERY_MS = 100

/**
 * Ends, once, the tenants' sessions for whose locks the sessions $1 wait, directly or behind other sessions. A session that itself waits
 * for a lock is left alone: it may be innocent, and is ended when it turns out to hold what the administrator needs.
 */
const END_BLOCKERS = `
  WITH RECURSIVE blocker (pid) AS (
    SELECT unnest(pg_blocking_pids(waiting)) FROM unnest($1::int[]) AS waiting
    UNION
    SELECT unnest(pg_blocking_pids(pid)) FROM blocker)
  SELECT pg_terminate_backend(pid) FROM blocker JOIN pg_stat_activity USING (pid)
  WHERE backend_type = 'client backend' AND usename <> current_user AND wait_event_type IS DISTINCT FROM 'Lock'`

/** The administrator's statements that run now, each freed of tenants' sessions that block it. */
export interface Blockers extends Disposable {
  /** Watches the session with this pid while `work` uses it. */
  during<T>(pid: number, work: () => Promise<T>): Promise<T>
}

/**
 * Starts no timer while no statement runs. `run` sends one statement over a connection that nothing else uses, so that the search never
 * waits behind the statements it is there for.
 */
export function createBlockers(run: (text: string, values: unknown[]) => Promise<unknown>): Blockers {
  /** Time at which each statement began, by a key of its own: two may follow each other in one session. */
  const running = new Map<symbol, { readonly pid: number; readonly since: number }>()
  let timer: NodeJS.Timeout | undefined
  let isLooking = false

  async function look(): Promise<void> {
    const now = performance.now()
    const late = [...running.values()].filter(({ since }) => now - since >= PATIENCE_MS).map(({ pid }) => pid)
    if (late.length === 0 || isLooking) return
    isLooking = true
    try {
      await run(END_BLOCKERS, [late])
    } catch {
      // The statement that waits reports what is wrong with the server, or its lock_timeout ends it.
    } finally {
      isLooking = false
    }
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    async during(pid, work) {
      const key = Symbol(pid)
      running.set(key, { pid, since: performance.now() })
      timer ??= setInterval(() => void look(), EVERY_MS).unref()
      try {
        return await work()
      } finally {
        running.delete(key)
        if (running.size === 0) stop()
      }
    },
    [Symbol.dispose]: stop,
  }
}
