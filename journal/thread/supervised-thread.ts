import { setTimeout } from 'node:timers/promises'
import { backoffMs } from '../../shared/backoff.ts'
import { createLogLimit } from '../log-limit.ts'
import { JournalFileError, startThread, type Thread } from './thread.ts'

/** Delay between two starts; the first restart comes at once. */
const BACK_OFF = { baseMs: 250, maxMs: 15_000 }
/** Lifetime in milliseconds after which a crash no longer counts towards the delay. */
const STABLE_MS = 30_000
const LOG_MS = 60_000

interface Warner {
  warn(details: object, message: string): void
}

export interface SupervisedThreadDeps {
  readonly program: URL
  readonly path: string
  readonly log: Warner
  /** Waits the given milliseconds, or until the signal aborts; replaced in tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

export interface SupervisedThread<Q, A> {
  /** Asks the thread. @throws JournalFileError, with `again: true` while no thread runs */
  ask(question: Q): Promise<A>
  /** Sends `last` to the thread, which ends the thread. */
  close(last: Q): Promise<void>
}

/**
 * Starts a thread, and starts it again when it crashes: at once, then with growing delays.
 * @throws JournalFileError when the first start fails
 */
export async function superviseThread<Q, A extends { readonly type: string }>(
  deps: SupervisedThreadDeps,
): Promise<SupervisedThread<Q, A>> {
  const { program, path, log, pause = pauseFor } = deps
  const closing = new AbortController()
  let thread: Thread<Q, A> | undefined = await startThread<Q, A>(program, path)
  const [ofDeaths, ofStarts] = [createLogLimit(LOG_MS), createLogLimit(LOG_MS)]
  let failures = 0
  let watching = watch(thread)

  async function watch({ ended, failure }: Thread<Q, A>): Promise<void> {
    const since = performance.now()
    await ended
    thread = undefined
    if (closing.signal.aborted) return
    if (performance.now() - since > STABLE_MS) failures = 0
    ofDeaths(() => log.warn({ err: failure(), path }, 'journal thread crashed; restarting it'))
    watching = restart()
  }

  async function restart(): Promise<void> {
    for (;;) {
      if (failures > 0) await pause(backoffMs(BACK_OFF, failures), closing.signal)
      if (closing.signal.aborted) return
      failures += 1
      try {
        thread = await startThread<Q, A>(program, path)
        watching = watch(thread)
        return
      } catch (error) {
        ofStarts(() => log.warn({ err: error, path }, 'journal thread cannot be started; retrying'))
      }
    }
  }

  return {
    async ask(question) {
      if (thread) return thread.ask(question)
      throw new JournalFileError({ code: 'unavailable', message: 'journal thread is restarting', again: true })
    },
    async close(last) {
      closing.abort()
      const asked = thread
      await end(asked, last)
      await watching
      // A restart may have been under way.
      if (thread !== asked) await end(thread, last)
      await thread?.ended
    },
  }

  async function end(running: Thread<Q, A> | undefined, last: Q): Promise<void> {
    // A thread that has crashed meanwhile needs no close.
    await running?.ask(last).catch((error: unknown) => log.warn({ err: error }, 'journal was not closed cleanly'))
  }
}

async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal, ref: false }).catch(ignoreAbort)
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error
}
