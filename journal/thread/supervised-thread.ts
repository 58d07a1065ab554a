import { setTimeout } from 'node:timers/promises'
import { backoffMs } from '../../shared/backoff.ts'
import { createLogLimit } from '../log-limit.ts'
import { JournalFileError, startThread, type Thread } from './thread.ts'

/** Between two starts; the first comes at once. */
const BACK_OFF = { baseMs: 250, maxMs: 15_000 }
/** A thread that has lived for so long did not die of what it was started with. */
const WELL_MS = 30_000
const LOG_MS = 60_000

interface Warner {
  warn(details: object, message: string): void
}

export interface SupervisedThreadDeps {
  readonly program: URL
  readonly path: string
  readonly log: Warner
  /** Waits so many milliseconds, or until the signal aborts; for tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

export interface SupervisedThread<Q, A> {
  /** @throws JournalFileError; `again` while there is no thread */
  ask(question: Q): Promise<A>
  /** Puts `last` to the thread, which ends by it. */
  close(last: Q): Promise<void>
}

/**
 * A thread that is started anew when it dies: at once, and ever more seldom if it goes on dying.
 * @throws JournalFileError when it could not be started at first
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
    if (performance.now() - since > WELL_MS) failures = 0
    ofDeaths(() => log.warn({ err: failure(), path }, 'a thread of the journal has died and is started anew'))
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
        ofStarts(() => log.warn({ err: error, path }, 'a thread of the journal cannot be started'))
      }
    }
  }

  return {
    async ask(question) {
      if (thread) return thread.ask(question)
      throw new JournalFileError({ code: 'unavailable', message: 'the journal is being opened anew', again: true })
    },
    async close(last) {
      closing.abort()
      const asked = thread
      await end(asked, last)
      await watching
      // One that was being started then.
      if (thread !== asked) await end(thread, last)
      await thread?.ended
    },
  }

  async function end(running: Thread<Q, A> | undefined, last: Q): Promise<void> {
    // One that has died meanwhile has ended too.
    await running?.ask(last).catch((error: unknown) => log.warn({ err: error }, 'the journal was not closed in order'))
  }
}

async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal, ref: false }).catch(ignoreAbort)
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error
}
