import { parentPort } from 'node:worker_threads'
import { MooringError } from '../shared/errors.ts'
import type { Envelope, Failure } from './supervised-thread.ts'

/** SQLite result codes for data that can never be kept: TOOBIG, CONSTRAINT, MISMATCH, RANGE. */
const PERMANENT = new Set([18, 19, 20, 25])
const PRIMARY_CODE_MASK = 0xff

/** Answers a question of the main thread. The question `close` ends the thread. */
export type ThreadHandler<Q, A> = (question: Q) => A | Promise<A>

function failure(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof Error && 'again' in error && typeof error.again === 'boolean') {
    return { type: 'failed', code: 'unavailable', message, again: error.again }
  }
  if (error instanceof MooringError) return { type: 'failed', code: error.code, message, again: false }
  if (isSystemError(error)) return { type: 'failed', code: 'unavailable', message, again: true }
  const errcode = error instanceof Error && 'errcode' in error ? Number(error.errcode) & PRIMARY_CODE_MASK : undefined
  return { type: 'failed', code: 'unavailable', message, again: errcode !== undefined && !PERMANENT.has(errcode) }
}

/**
 * Runs the loop of a thread: calls `open`, reports that, then answers each question once. Questions may overlap when answers are
 * asynchronous.
 */
export function serveThread<Q extends { readonly type: string }, A>(open: () => ThreadHandler<Q, A>): void {
  const reply = (number: number, content: A | Failure | { readonly type: 'opened' }) =>
    parentPort?.postMessage({ number, content } satisfies Envelope<unknown>)

  let answer: ThreadHandler<Q, A>
  try {
    answer = open()
  } catch (error) {
    reply(0, failure(error))
    return
  }
  async function serve({ number, content }: Envelope<Q>): Promise<void> {
    try {
      reply(number, await answer(content))
    } catch (error) {
      reply(number, failure(error))
    }
    if (content.type === 'close') parentPort?.close()
  }
  parentPort?.on('message', (question: Envelope<Q>) => void serve(question))
  reply(0, { type: 'opened' })
}

/**
 * Whether an error comes from the operating system (Node.js, "Class: SystemError"): a fault of the disk rather than of the data.
 */
export function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
}
