import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../error-code.ts'

const RETRY_MS = 50

/**
 * Acquires the lock to start, stop or remove the server of a directory, across processes. The lock is a socket in Linux' abstract namespace
 * (unix(7)): binding is exclusive, and the kernel releases it when its holder ends, so a lock is never stale.
 */
export async function tryLock(directory: string): Promise<AsyncDisposable | undefined> {
  const name = createHash('sha256').update(directory).digest('hex')
  const server = createServer((socket) => socket.destroy())
  server.listen(`\0mooring-server-${name}`)
  server.unref()
  try {
    await once(server, 'listening')
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE')) return undefined
    throw error
  }
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

/** Waits for the lock, runs `work`, and releases it. @throws the signal's reason when it aborts before the lock is acquired */
export async function withLock<T>(directory: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let held = await tryLock(directory)
  while (!held) {
    await delay(RETRY_MS, undefined, { signal })
    held = await tryLock(directory)
  }
  try {
    return await work()
  } finally {
    await held[Symbol.asyncDispose]()
  }
}
