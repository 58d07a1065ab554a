import { getHeapStatistics } from 'node:v8'
import { collect } from './collector.ts'

const SAMPLE_MS = 5_000
/** Share of one processor above which the edge is under load. */
const LOAD = 0.2
/** Factor by which the share must fall before load counts as ended. */
const FALL = 4
/** Maximum heap size, in bytes, that a collection finishes in about 200 ms. */
const SMALL_HEAP = 64 * 1024 * 1024

/**
 * Creates a detector for the end of load. The returned function takes the share of one processor that was used since its last call, and
 * must be called every few seconds. `ended` is called once per load.
 */
export function createLoadWatch(ended: () => void): (share: number) => void {
  /** Largest share since the last end of load. */
  let most = 0
  return function observe(share) {
    most = Math.max(most, share)
    if (most < LOAD || share * FALL > most) return
    most = share
    ended()
  }
}

/**
 * Returns memory to the system after load, until disposed.
 *
 * V8 keeps the pages that load has filled: up to 200 MB on an edge that needs 20 MB. It returns them while a process is neither busy
 * nor fully idle, so an edge without visitors keeps them and the next load adds to them. A collection at the end of load takes about
 * 100 ms (docs/benchmarks.md, "Memory after load").
 */
export function returnMemoryAfterLoad(): Disposable {
  const observe = createLoadWatch(() => void returnMemory())
  let [usage, at] = [process.cpuUsage(), performance.now()]
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(usage)
    const now = performance.now()
    observe((user + system) / 1_000 / (now - at))
    usage = process.cpuUsage()
    at = now
  }, SAMPLE_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

async function returnMemory(): Promise<void> {
  await collect({ type: 'major', execution: 'async' })
  if (getHeapStatistics().used_heap_size <= SMALL_HEAP)
    await collect({ type: 'major', execution: 'async', flavor: 'last-resort' })
}
