import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** So many bytes are read between two collections. */
const BYTES = 4 * 1024 * 1024

let read = 0
let collect: ((options: { readonly type: 'minor'; readonly execution: 'sync' }) => void) | undefined

/**
 * Tells that a chunk was read from a socket that carries visitors' bytes.
 *
 * Such a chunk is garbage within moments, but its memory is outside of V8's heap, and for every 20 MB or so of that V8 goes through the whole heap to see
 * what it may free: a third of the processor time of a download on an edge with one tunnel, and the more tunnels, the longer. To collect the young
 * generation alone, which frees the chunks as well, takes half a millisecond (docs/benchmarks.md, "What a download is made of").
 */
export function readBytes(count: number): void {
  read += count
  if (read < BYTES) return
  read = 0
  collect ??= exposed()
  collect({ type: 'minor', execution: 'sync' })
}

function exposed(): NonNullable<typeof collect> {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as NonNullable<typeof collect>
}
