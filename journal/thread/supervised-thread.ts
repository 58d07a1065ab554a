import { setTimeout } from 'node:timers/promises'
import { JournalFileError, startThread, type Thread } from './thread.ts'

const RESTART_MS = 250

interface Warner {
  warn(details: object, message: string): void
}

export interface SupervisedThreadDeps {
  readonly program: URL
  readonly path: string
  readonly log: Warner
}

export interface SupervisedThread<Q, A> {
  /** @throws JournalFileError; `again` while there is no thread */
  ask(question: Q): Promise<A>
  /** Puts `last` to the thread, which ends by it. */
  close(last: Q): Promise<void>
}

/**
 * A thread that is started anew when it dies.
 * @throws JournalFileError when it could not be started at first
 */
export async function superviseThread<Q, A extends { readonly type: string }>(
  deps: SupervisedThreadDeps,
): Promise<SupervisedThread<Q, A>> {
  const { program, path, log } = deps
  const closing = new AbortController()
  let thread: Thread<Q, A> | undefined = await startThread<Q, A>(program, path)
  let watching = watch(thread)

  async function watch({ ended }: Thread<Q, A>): Promise<void> {
    await ended
    thread = undefined
    if (closing.signal.aborted) return
    log.warn({ path }, 'a thread of the journal has died and is started anew')
    watching = restart()
  }

  async function restart(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        thread = await startThread<Q, A>(program, path)
        watching = watch(thread)
        return
      } catch (error) {
        log.warn({ err: error, path }, 'a thread of the journal cannot be started')
        await setTimeout(RESTART_MS, undefined, { ref: false })
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
      // One that has died meanwhile has ended too.
      await thread?.ask(last).catch((error: unknown) => log.warn({ err: error }, 'the journal was not closed in order'))
      await watching
      await thread?.ended
    },
  }
}
