import { getHeapStatistics } from 'node:v8'
import { collect } from './collector.ts'

const SAMPLE_MS = 5_000
/** Share of one processor that is load. */
const LOAD = 0.2
/** Load has ended once it is this many times smaller than it was. */
const FALL = 4
/** Bytes of a heap that can be collected in less than some 200 ms. */
const SMALL_HEAP = 64 * 1024 * 1024

/**
 * Finds the end of load. Call what it returns every few seconds, with the processor time that was used since the call before, as a share of one processor.
 * `ended` is called once for each load.
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
 * Has memory given back to the system after load, until it is disposed of.
 *
 * V8 keeps the pages that load has filled, up to 200 MB on an edge that needs 20 MB. It gives them back while a process is neither busy nor quite idle, so that an
 * edge without visitors keeps them, and another load adds to them. So the end of load collects the heap once, in some 100 ms (docs/benchmarks.md, "Memory after load").
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
