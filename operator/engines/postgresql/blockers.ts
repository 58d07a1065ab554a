/** Time that a statement of the administrator runs before its blockers are ended, in ms. */
const PATIENCE_MS = 150
/** Interval of the check for blockers, in ms. */
const CHECK_INTERVAL_MS = 100

/**
 * Statement that ends the tenants' sessions whose locks block the sessions with the pids $1, directly or through other sessions. Skips a
 * session that itself waits for a lock: a later check ends it if it still blocks the administrator when it no longer waits.
 */
const END_BLOCKERS = `
  WITH RECURSIVE blocker (pid) AS (
    SELECT unnest(pg_blocking_pids(waiting)) FROM unnest($1::int[]) AS waiting
    UNION
    SELECT unnest(pg_blocking_pids(pid)) FROM blocker)
  SELECT pg_terminate_backend(pid) FROM blocker JOIN pg_stat_activity USING (pid)
  WHERE backend_type = 'client backend' AND usename <> current_user AND wait_event_type IS DISTINCT FROM 'Lock'`

/** Protection of the administrator's statements from locks of tenants: ends the tenants' sessions that block them. */
export interface Blockers extends Disposable {
  /** Runs `work`, and ends the sessions that block the session with this pid meanwhile. */
  during<T>(pid: number, work: () => Promise<T>): Promise<T>
}

/**
 * Creates the protection. Its timer runs only while a statement does. `run` sends one statement over a connection of its own, so that a
 * check never waits for the blocked statements.
 */
export function createBlockers(run: (text: string, values: unknown[]) => Promise<unknown>): Blockers {
  /** Start time and pid of each statement. Each has a key of its own, because consecutive statements may share a session. */
  const running = new Map<symbol, { readonly pid: number; readonly since: number }>()
  let timer: NodeJS.Timeout | undefined
  let isChecking = false

  async function endBlockers(): Promise<void> {
    const now = performance.now()
    const late = [...running.values()].filter(({ since }) => now - since >= PATIENCE_MS).map(({ pid }) => pid)
    if (late.length === 0 || isChecking) return
    isChecking = true
    try {
      await run(END_BLOCKERS, [late])
    } catch {
      // The blocked statement reports the server's error, or its lock_timeout ends it.
    } finally {
      isChecking = false
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
      timer ??= setInterval(() => void endBlockers(), CHECK_INTERVAL_MS).unref()
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
