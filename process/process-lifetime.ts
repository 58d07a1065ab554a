import { constants } from 'node:os'

/** End of the process, as the start function of a program sees it. */
export interface ProcessLifetime {
  /** Aborts when the process receives SIGINT or SIGTERM. */
  readonly stopping: AbortSignal
  /**
   * Registers a function that kills everything that must not outlive the process, such as child processes in their own process groups.
   * It is called when the process exits without a complete stop, and has 500 ms. A later registration replaces the earlier one.
   */
  onForcedEnd(kill: () => Promise<unknown>): void
}

/** Registers how the process exits. */
export interface ProcessExit extends ProcessLifetime {
  /** Starts the deadline of the stop: `stopMs` later the process exits with this code, also when the stop has not finished. */
  startDeadline(code: number): void
  /** Exits after a complete stop. A forced exit that has begun keeps its code, because it may be the reason that the stop finished. */
  end(code: number): void
  /** Kills everything that is registered, then exits with this code, with a sentence on stderr. */
  force(code: number, sentence: string): Promise<void>
}

/** Part of the stop deadline that {@link ProcessLifetime.onForcedEnd} functions have. */
const KILL_MS = 500
/** Time within which a second signal counts as the first: `npm start` forwards a signal that the terminal has already sent to all processes. */
const SAME_SIGNAL_MS = 500

/** Handles SIGINT and SIGTERM from the call on. Without a handler, a signal during the start would leave child processes behind. */
export function createProcessExit(stopMs: number): ProcessExit {
  const stop = new AbortController()
  let kill: () => Promise<unknown> = () => Promise.resolve()
  let stoppedAt = 0
  let deadline: NodeJS.Timeout | undefined
  let forced = false

  async function force(code: number, sentence: string): Promise<void> {
    if (forced) return
    forced = true
    process.stderr.write(`mooring: ${sentence}\n`)
    setTimeout(() => process.exit(code), KILL_MS)
    await Promise.allSettled([kill()])
    process.exit(code)
  }

  function end(code: number): void {
    if (!forced) process.exit(code)
  }

  function startDeadline(code: number): void {
    const overrun = () =>
      void force(code, `the stop did not finish within ${stopMs / 1e3} s; the remaining processes were killed.`)
    deadline ??= setTimeout(overrun, stopMs - KILL_MS)
  }

  function onSignal(signal: 'SIGINT' | 'SIGTERM'): void {
    if (!stop.signal.aborted) {
      stoppedAt = performance.now()
      startDeadline(0)
      // Databases may take seconds to stop, in which a person at a terminal would see nothing.
      if (signal === 'SIGINT' && process.stderr.isTTY)
        process.stderr.write('\nmooring: stopping; Ctrl-C once more ends it at once.\n')
      stop.abort()
    } else if (performance.now() - stoppedAt > SAME_SIGNAL_MS) {
      void force(128 + constants.signals[signal], 'second signal: the remaining processes were killed.')
    }
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal)

  return { stopping: stop.signal, onForcedEnd: (act) => void (kill = act), startDeadline, end, force }
}

/**
 * Starts parts of a program. Each part is added to `cleanup` when it has started. When a part fails to start, the parts before it are
 * stopped in reverse order.
 */
export async function startWithCleanup<T>(startParts: (cleanup: AsyncDisposableStack) => Promise<T>): Promise<T> {
  const cleanup = new AsyncDisposableStack()
  try {
    return await startParts(cleanup)
  } catch (error) {
    await cleanup.disposeAsync()
    throw error
  }
}
