import { Buffer } from 'node:buffer'
import { setFlagsFromString, getHeapStatistics } from 'node:v8'
import { runInNewContext } from 'node:vm'

// The global `Buffer` is a getter: files on the path of requests and chunks import it, so that each use costs less.

/** Copies bytes into memory of their own, so that the copy does not keep the larger buffer they came in. A string is read as latin1. */
export function ownBytes(bytes: Uint8Array | string): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  if (typeof bytes === 'string') own.write(bytes, 0, 'latin1')
  else own.set(bytes)
  return own
}

/** Maximum ratio of a chunk's backing memory to its size. Copying every chunk would cost more than it saves. */
const MAX_SHARE = 32

/**
 * Returns the chunk, or a copy where its backing memory is more than 32 times its size. Bytes from a socket are decrypted in place: a
 * client that sends one byte and then much that is ignored would make each byte keep the 64 KiB buffer it was read with.
 */
export function compact(chunk: Buffer): Buffer {
  return chunk.length * MAX_SHARE >= chunk.buffer.byteLength ? chunk : ownBytes(chunk)
}

/**
 * Bytes of short-lived buffers between two collections. With twice as many, V8 collects its whole heap first when its young generation
 * is at its largest.
 */
const BYTES = 4 * 1024 * 1024

let made = 0

/**
 * Counts the bytes of short-lived buffers, and collects the young generation after every 4 MiB of them.
 *
 * The memory of such a buffer is outside V8's heap. Without this function V8 collects its whole heap after every 10 to 20 MB of it: a
 * third of the processor time of a download through an edge with one tunnel, more with more tunnels, and pauses of 10 ms. Collecting
 * the young generation frees the same buffers in half a millisecond (docs/decisions/2026-11-23-buffers-are-collected-young.md).
 */
export function madeGarbage(bytes: number): void {
  made += bytes
  if (made < BYTES) return
  made = 0
  collect({ type: 'minor', execution: 'sync' })
}

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
 * 100 ms (docs/decisions/2026-11-23-memory-is-returned-after-load.md).
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

interface Collection {
  /** `minor`: the young generation alone; `major`: the whole heap. */
  readonly type: 'minor' | 'major'
  /** `async`: in a later turn of the event loop; the returned promise resolves after it. */
  readonly execution: 'sync' | 'async'
  /** `last-resort`: returns all empty pages to the system, and takes several times as long. */
  readonly flavor?: 'regular' | 'last-resort'
}

let exposed: ((collection: Collection) => unknown) | undefined

/** Runs V8's garbage collector. */
function collect(collection: Collection): unknown {
  exposed ??= expose()
  return exposed(collection)
}

function expose(): NonNullable<typeof exposed> {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as NonNullable<typeof exposed>
}
