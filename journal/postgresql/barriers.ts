import { randomUUID } from 'node:crypto'

/** Waits for notifications that this process sent itself. Each arrives after all notifications committed before it. */
export interface Barriers {
  /**
   * Sends a notification, and resolves when it has arrived or when `signal` aborts: a broken connection may lose it. @throws what
   * `notify` throws
   */
  pass(signal: AbortSignal): Promise<void>
  /** Reports that the notification with this token has arrived. */
  reached(token: string): void
  /** Number of notifications that have not arrived yet. */
  readonly waiting: number
}

export function createBarriers(notify: (token: string) => Promise<void>): Barriers {
  const waiting = new Map<string, () => void>()
  return {
    async pass(signal) {
      const token = randomUUID()
      const over = Promise.withResolvers<undefined>()
      const settle = () => over.resolve(undefined)
      waiting.set(token, settle)
      signal.addEventListener('abort', settle, { once: true })
      try {
        if (signal.aborted) return
        // A connection that is about to break may answer late, or never.
        await Promise.race([notify(token), over.promise])
        await over.promise
      } finally {
        signal.removeEventListener('abort', settle)
        waiting.delete(token)
      }
    },
    reached: (token) => waiting.get(token)?.(),
    get waiting() {
      return waiting.size
    },
  }
}
