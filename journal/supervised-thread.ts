import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { backoffMs, sleep } from '../shared/timers.ts'
import { createLogLimit } from './failure-log.ts'
import { MooringError } from '../shared/errors.ts'

/** Delay between two starts; the first restart comes at once. */
const BACK_OFF = { baseMs: 250, maxMs: 15_000 }
/** Lifetime in milliseconds after which a crash no longer counts towards the delay. */
const STABLE_MS = 30_000
const LOG_MS = 60_000

interface Warner {
  warn(details: object, message: string): void
}

/** Error of a thread. `again` says that a later attempt may succeed, as after a full disk or a disk error. */
export interface Failure {
  readonly type: 'failed'
  readonly code: string
  readonly message: string
  readonly again: boolean
}

/** Question or answer, as posted between threads. The first answer of a thread, number 0, reports whether it could start. */
export interface Envelope<T> {
  readonly number: number
  readonly content: T
}

/** Error of a journal file. `again` says that a later attempt may succeed. */
export class JournalFileError extends MooringError {
  readonly again: boolean

  constructor({ code, message, again }: Omit<Failure, 'type'>, options?: ErrorOptions) {
    super(code, message, options)
    this.again = again
  }
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
  const { program, path, log, pause = sleep } = deps
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

/** Thread that has the journal's file open and answers messages. */
interface Thread<Q, A> {
  /** Asks the thread. @throws JournalFileError of the file; with `again: true` when the thread has ended */
  ask(question: Q): Promise<A>
  /** Resolves when the thread has ended, for any reason; never rejects. */
  readonly ended: Promise<void>
  /** Returns the reason of the end, once the thread has ended. */
  readonly failure: () => JournalFileError | undefined
}

/**
 * Starts the thread of `program` on the file at `path`.
 * @throws JournalFileError when it could not open the file
 */
async function startThread<Q, A extends { readonly type: string }>(program: URL, path: string): Promise<Thread<Q, A>> {
  // The thread does not inherit flags of this process (an inspector, a loader, --eval).
  const worker = new Worker(program, { workerData: path, execArgv: [] })
  const waiting = new Map<number, PromiseWithResolvers<A>>()
  let asked = 0
  let endError: JournalFileError | undefined

  function settle({ number, content }: Envelope<A | Failure>): void {
    const question = waiting.get(number)
    waiting.delete(number)
    if (isFailure(content)) question?.reject(new JournalFileError(content))
    else question?.resolve(content)
  }
  function end(message: string): void {
    endError ??= new JournalFileError({ code: 'unavailable', message, again: true })
    for (const question of waiting.values()) question.reject(endError)
    waiting.clear()
  }
  function expect(number: number): Promise<A> {
    const question = Promise.withResolvers<A>()
    waiting.set(number, question)
    return question.promise
  }
  async function ask(content: Q): Promise<A> {
    if (endError) throw endError
    asked += 1
    worker.postMessage({ number: asked, content } satisfies Envelope<Q>)
    return expect(asked)
  }

  worker.on('message', settle)
  worker.on('error', (error: Error) => end(error.message))
  worker.on('exit', () => end('journal thread has ended'))
  const ended = once(worker, 'exit').then(
    () => undefined,
    () => undefined,
  )
  await expect(0)
  return { ask, ended, failure: () => endError }
}

function isFailure(content: { readonly type: string }): content is Failure {
  return content.type === 'failed'
}
