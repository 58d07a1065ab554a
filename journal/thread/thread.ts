import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { MooringError } from '../../shared/errors.ts'
import type { Envelope, Failure } from './messages.ts'

/** Why the file did not do what it was asked. `again`: the same may work later. */
export class JournalFileError extends MooringError {
  readonly again: boolean

  constructor({ code, message, again }: Omit<Failure, 'type'>, options?: ErrorOptions) {
    super(code, message, options)
    this.again = again
  }
}

/** A thread that has the file open, asked by messages. */
export interface Thread<Q, A> {
  /** @throws JournalFileError what the file says; `again` when the thread has ended */
  ask(question: Q): Promise<A>
  /** Resolves when the thread has ended, for whatever reason; never rejects. */
  readonly ended: Promise<void>
  /** What it ended of, once it has. */
  readonly failure: () => JournalFileError | undefined
}

/**
 * Starts the thread of `program` on the file at `path`.
 * @throws JournalFileError when it could not open the file
 */
export async function startThread<Q, A extends { readonly type: string }>(program: URL, path: string): Promise<Thread<Q, A>> {
  // Flags of this process (an inspector, a loader, --eval) are not for the thread.
  const worker = new Worker(program, { workerData: path, execArgv: [] })
  const waiting = new Map<number, PromiseWithResolvers<A>>()
  let asked = 0
  let gone: JournalFileError | undefined

  function settle({ number, content }: Envelope<A | Failure>): void {
    const question = waiting.get(number)
    waiting.delete(number)
    if (isFailure(content)) question?.reject(new JournalFileError(content))
    else question?.resolve(content)
  }
  function end(message: string): void {
    gone ??= new JournalFileError({ code: 'unavailable', message, again: true })
    for (const question of waiting.values()) question.reject(gone)
    waiting.clear()
  }
  function expect(number: number): Promise<A> {
    const question = Promise.withResolvers<A>()
    waiting.set(number, question)
    return question.promise
  }
  async function ask(content: Q): Promise<A> {
    if (gone) throw gone
    asked += 1
    worker.postMessage({ number: asked, content } satisfies Envelope<Q>)
    return expect(asked)
  }

  worker.on('message', settle)
  worker.on('error', (error: Error) => end(error.message))
  worker.on('exit', () => end('its thread has ended'))
  const ended = once(worker, 'exit').then(
    () => undefined,
    () => undefined,
  )
  await expect(0)
  return { ask, ended, failure: () => gone }
}

function isFailure(content: { readonly type: string }): content is Failure {
  return content.type === 'failed'
}
