import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { MooringError } from '../../shared/errors.ts'
import { StoreError } from '../port.ts'
import type { Batch, Contents, Reply, Request } from './sqlite.ts'

/** Durable part of the store, in its own thread: an fsync does not block the event loop. */
export interface Database {
  /** Contents of the file when it was opened. */
  readonly contents: Contents
  /** Resolves when the thread has exited; with an error when `close` was not called. No write is possible afterwards. */
  readonly ended: Promise<MooringError | undefined>
  /** Resolves once the batch is on disk. Call it once at a time. @throws StoreError `unavailable`: no part of the batch is stored */
  commit(batch: Batch): Promise<void>
  /** Ends the thread and releases the lock. */
  close(): Promise<void>
}

function errorOf(code: string, message: string, path: string): MooringError {
  if (code === 'locked')
    return new MooringError('locked', `${path} is in use by another process; stop that one, or choose another --data-dir`)
  if (code === 'unavailable') return new StoreError('unavailable', `the state in ${path} cannot be written: ${message}`)
  return new MooringError(code, message)
}

/**
 * Opens the file at `path`, whose directory must exist.
 * @throws MooringError `locked` when another process has it open, `newer_layout`; StoreError `unavailable` for other errors
 */
export async function openDatabase(path: string): Promise<Database> {
  // Without flags of this process (an inspector, a loader, --eval).
  const worker = new Worker(new URL('worker.ts', import.meta.url), { workerData: path, execArgv: [] })
  let waiting: PromiseWithResolvers<Reply> | undefined
  let ended: MooringError | undefined
  const exited = once(worker, 'exit')
  let closing = false

  function settle(reply: Reply): void {
    const request = waiting
    waiting = undefined
    if (reply.type === 'failed') request?.reject(errorOf(reply.code, reply.message, path))
    else request?.resolve(reply)
  }
  function end(reason: string): void {
    ended ??= errorOf('unavailable', reason, path)
    waiting?.reject(ended)
    waiting = undefined
  }
  async function ask(request?: Request): Promise<Reply> {
    if (ended) throw ended
    waiting = Promise.withResolvers<Reply>()
    if (request) worker.postMessage(request)
    return waiting.promise
  }

  worker.on('message', settle)
  worker.on('error', (error: Error) => end(error.message))
  worker.on('exit', () => end('its thread has ended'))

  const opened = await ask().catch(async (error: unknown) => {
    await exited
    throw error
  })
  if (opened.type !== 'opened') throw errorOf('unavailable', 'its thread did not start', path)
  return {
    contents: opened.contents,
    ended: exited.then(() => (closing ? undefined : ended)),
    async commit(batch) {
      await ask({ type: 'commit', batch })
    },
    async close() {
      closing = true
      if (!ended) await ask({ type: 'close' })
      await exited
    },
  }
}
