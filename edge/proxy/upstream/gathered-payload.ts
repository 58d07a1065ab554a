import type { PayloadSink } from './chunk.ts'

/**
 * Payload of one buffer in one range, moved together over the framing between. A backend may send chunks of one byte: without this each
 * would be a write, a frame and a TLS record of its own, five thousand for one read.
 */
export class GatheredPayload implements PayloadSink {
  #start = 0
  #end = 0

  payload(chunk: Buffer, start: number, end: number): void {
    if (this.#end === 0) this.#start = this.#end = start
    if (this.#end !== start) chunk.copyWithin(this.#end, start, end)
    this.#end += end - start
  }

  /** Returns the gathered payload as a part of the buffer. */
  of(chunk: Buffer): Buffer {
    return chunk.subarray(this.#start, this.#end)
  }
}
