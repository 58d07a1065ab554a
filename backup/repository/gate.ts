export interface GateOptions {
  /** Maximum number of operations at one time. */
  readonly parallel: number
  /** Time of one operation in ms, the wait for its turn included. */
  readonly limitMs: number
  /** Returns the error of an operation that takes longer. */
  readonly late: () => Error
}

/**
 * Runs an operation in its turn. An operation that takes too long fails, but keeps its slot until the system returns: a hung network file
 * system then blocks only `parallel` of the process's few threads for files, and later operations fail in time too.
 */
export type Gate = <T>(act: () => Promise<T>, undo?: (result: T) => Promise<void>) => Promise<T>

/** Creates a gate. `undo` releases the result of an operation that returns after its time limit. */
export function createGate({ parallel, limitMs, late }: GateOptions): Gate {
  let running = 0
  const waiting = new Set<() => void>()

  function next(): void {
    running -= 1
    for (const start of waiting) {
      waiting.delete(start)
      start()
      return
    }
  }

  return (act, undo = () => Promise.resolve()) =>
    new Promise((resolve, reject) => {
      let ended = false
      const start = () => {
        running += 1
        act()
          .then(async (result) => {
            clearTimeout(timer)
            if (ended) await undo(result)
            else resolve(result)
          })
          .catch((error: unknown) => {
            clearTimeout(timer)
            reject(error instanceof Error ? error : new Error(String(error)))
          })
          .finally(next)
      }
      const timer = setTimeout(() => {
        ended = true
        waiting.delete(start)
        reject(late())
      }, limitMs)
      if (running < parallel) start()
      else waiting.add(start)
    })
}
