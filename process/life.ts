import { constants } from 'node:os'

/** What a start is told of the end of its process. */
export interface Life {
  /** Aborts when the process is asked to stop. */
  readonly stopping: AbortSignal
  /**
   * `kill` ends at once what must not outlive the process, such as children in process groups of their own. It is called when the process
   * has to end without having stopped in good order, and has half a second. Called again, it takes the place of the one before.
   */
  onForcedEnd(kill: () => Promise<unknown>): void
}

/** The end of a process, in the hands of whoever runs it. */
export interface Ending extends Life {
  /** From now on the process has the time for a stop, then it ends with this code, whatever is under way. */
  startClock(code: number): void
  /** Ends the process after a stop in good order. One that is being forced keeps its code: the force may be what let the stop finish. */
  end(code: number): void
  /** Ends the process with this code now, with a sentence on stderr. */
  force(code: number, sentence: string): Promise<void>
}

/** What {@link Life.onForcedEnd} has, of the time for a stop. */
const KILL_MS = 500
/** `npm start` passes on the signal that the terminal has given to all its processes already: within this time it is the same one. */
const SAME_SIGNAL_MS = 500

/** Takes SIGINT and SIGTERM from the first moment on: a process that is cut off would leave what it has started. */
export function createEnding(stopMs: number): Ending {
  const asked = new AbortController()
  let kill: () => Promise<unknown> = () => Promise.resolve()
  let askedAt = 0
  let clock: NodeJS.Timeout | undefined
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

  function startClock(code: number): void {
    const overrun = () => void force(code, `not everything had stopped within ${stopMs / 1e3} s; what was left was killed.`)
    clock ??= setTimeout(overrun, stopMs - KILL_MS)
  }

  function onSignal(signal: 'SIGINT' | 'SIGTERM'): void {
    if (!asked.signal.aborted) {
      askedAt = performance.now()
      startClock(0)
      asked.abort()
    } else if (performance.now() - askedAt > SAME_SIGNAL_MS) {
      void force(128 + constants.signals[signal], 'asked a second time: everything that was left was killed.')
    }
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal)
  return { stopping: asked.signal, onForcedEnd: (act) => void (kill = act), startClock, end, force }
}
