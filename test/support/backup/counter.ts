import { setTimeout as pause } from 'node:timers/promises'

/** One acknowledged row. Times are in ms since the epoch, by the clock of this machine, which is that of the server, too. */
export interface Counted {
  readonly n: number
  /** Time before the statement was sent. */
  readonly begunAt: number
  /** Time after its acknowledgement. */
  readonly endedAt: number
}

const EVERY_MS = 100

/** Inserts the rows 1, 2, 3 and so on into a database of any family, one every 100 ms. @param insert inserts and commits one row */
export function startCounter(insert: (n: number) => Promise<unknown>): { stop(): Promise<readonly Counted[]> } {
  const counted: Counted[] = []
  const stopped = new AbortController()
  async function count(): Promise<void> {
    for (let n = 1; !stopped.signal.aborted; n += 1) {
      const begunAt = Date.now()
      await insert(n)
      counted.push({ n, begunAt, endedAt: Date.now() })
      await pause(EVERY_MS)
    }
  }
  const running = count()
  return {
    async stop() {
      stopped.abort()
      await running
      return counted
    },
  }
}

/**
 * Returns the bounds of the last row that a restore to `moment` has. They differ by the row that was being committed then. Server times have
 * microseconds, of which this process sees milliseconds.
 */
export function lastRowAt(counted: readonly Counted[], moment: number): { readonly atLeast: number; readonly atMost: number } {
  return {
    atLeast: counted.findLast(({ endedAt }) => endedAt < moment)?.n ?? 0,
    atMost: counted.findLast(({ begunAt }) => begunAt <= moment)?.n ?? 0,
  }
}

/** Returns five random whole seconds while the rows were inserted, in ms. */
export function randomSeconds(counted: readonly Counted[]): readonly number[] {
  const first = Math.ceil((counted[0]?.endedAt ?? 0) / 1_000)
  const last = Math.floor((counted.at(-1)?.begunAt ?? 0) / 1_000)
  return Array.from({ length: 5 }, () => (first + Math.floor(Math.random() * (last - first + 1))) * 1_000)
}
