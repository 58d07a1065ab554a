import { keyToString } from './key-string.ts'
import type { Key } from './port.ts'

/** Those who wait for a change of one key; however many they are, a change costs only the waiters of its own key. */
export interface KeyWaiters {
  /**
   * Tries now, and again at each `notify` of the key, until `attempt` returns something; then resolves with that.
   * @throws what `attempt` throws, or the signal's reason when it aborts first
   */
  wait<T>(key: Key, attempt: () => T | undefined, signal: AbortSignal): Promise<T>
  notify(key: Key): void
}

export function createKeyWaiters(): KeyWaiters {
  const waiting = new Map<string, Set<() => void>>()

  function subscribe(key: string, retry: () => void): () => void {
    const retries = waiting.get(key) ?? new Set()
    waiting.set(key, retries.add(retry))
    return () => {
      if (retries.delete(retry) && retries.size === 0) waiting.delete(key)
    }
  }

  function wait<T>(key: Key, attempt: () => T | undefined, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const first = attempt()
      if (first !== undefined) {
        resolve(first)
        return
      }
      const stop = () => {
        unsubscribe()
        signal.removeEventListener('abort', onAbort)
      }
      const onAbort = () => {
        stop()
        reject(signal.reason as Error)
      }
      const retry = () => {
        try {
          const result = attempt()
          if (result === undefined) return
          resolve(result)
        } catch (error) {
          reject(error instanceof Error ? error : new TypeError('not an error was thrown', { cause: error }))
        }
        stop()
      }
      // In the same turn as the first attempt: no change can come between.
      const unsubscribe = subscribe(keyToString(key), retry)
      signal.addEventListener('abort', onAbort)
    })
  }

  function notify(key: Key): void {
    for (const retry of [...(waiting.get(keyToString(key)) ?? [])]) retry()
  }

  return { wait, notify }
}
