import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { MooringError } from '../../shared/errors.ts'
import type { Envelope, Failure } from './messages.ts'

/** Error of a journal file. `again` says that a later attempt may succeed. */
export class JournalFileError extends MooringError {
  readonly again: boolean

  constructor({ code, message, again }: Omit<Failure, 'type'>, options?: ErrorOptions) {
    super(code, message, options)
    this.again = again
  }
}

/** Thread that has the journal's file open and answers messages. */
export interface Thread<Q, A> {
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
export async function startThread<Q, A extends { readonly type: string }>(program: URL, path: string): Promise<Thread<Q, A>> {
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
