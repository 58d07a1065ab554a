import { collect } from './collector.ts'

/** So many bytes are made between two collections; with twice as many V8 goes through its whole heap first when its young generation is at its largest. */
const BYTES = 4 * 1024 * 1024

let made = 0

/**
 * Counts buffers that were made for bytes on their way between visitors and clients.
 *
 * Such a buffer is garbage within moments, but its memory is outside of V8's heap, and for every 10 to 20 MB of that V8 goes through the whole heap to see
 * what it may free: a third of the processor time of a download on an edge with one tunnel, and the more tunnels, the longer; stalls of 10 ms, three times a
 * second, among small requests. To collect the young generation alone, which frees the buffers as well, takes half a millisecond (docs/benchmarks.md,
 * "What a download is made of").
 */
export function madeGarbage(bytes: number): void {
  made += bytes
  if (made < BYTES) return
  made = 0
  collect({ type: 'minor', execution: 'sync' })
}
