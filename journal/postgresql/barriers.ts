import { randomUUID } from 'node:crypto'

/** Waits for notifications of one's own: each comes after all that was notified of before it. */
export interface Barriers {
  /** Resolves when its notification has come, or when `signal` aborts: one may be lost with its connection. Throws what `notify` throws. */
  pass(signal: AbortSignal): Promise<void>
  /** The notification of this token has come. */
  reached(token: string): void
  /** Those that are waited for. */
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
        // A connection that is about to break answers late, if ever.
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
