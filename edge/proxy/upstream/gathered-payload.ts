import type { PayloadSink } from './chunk.ts'

/**
 * The payload of one buffer in one piece, moved together over the framing between: a backend may send chunks of a byte, and each would else be a write,
 * a frame and a record of its own, five thousand for what was read at once.
 */
export class GatheredPayload implements PayloadSink {
  #start = 0
  #end = 0

  payload(chunk: Buffer, start: number, end: number): void {
    if (this.#end === 0) this.#start = this.#end = start
    if (this.#end !== start) chunk.copyWithin(this.#end, start, end)
    this.#end += end - start
  }

  /** What was gathered, as a part of the buffer. */
  of(chunk: Buffer): Buffer {
    return chunk.subarray(this.#start, this.#end)
  }
}
