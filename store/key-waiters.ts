import { keyToString } from './key-string.ts'
import type { Key } from './port.ts'

/** Waiters for changes of single keys. A change costs only the waiters of its own key. */
export interface KeyWaiters {
  /**
   * Calls `attempt` now and at each `notify` of the key until it returns a value other than undefined, and resolves with that value.
   * @throws the error of `attempt`, or the signal's reason when it aborts first
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
          reject(error instanceof Error ? error : new TypeError('a value that is not an Error was thrown', { cause: error }))
        }
        stop()
      }
      // In the same turn as the first attempt, so that no change is missed.
      const unsubscribe = subscribe(keyToString(key), retry)
      signal.addEventListener('abort', onAbort)
    })
  }

  function notify(key: Key): void {
    for (const retry of [...(waiting.get(keyToString(key)) ?? [])]) retry()
  }

  return { wait, notify }
}
