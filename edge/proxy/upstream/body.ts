import { ChunkScanner, type PayloadSink } from './chunk.ts'
import type { BodyKind } from '../head/response-head.ts'

/** Follows one body to its end, for each kind of framing. */
export class Body {
  readonly kind: BodyKind
  readonly chunks: ChunkScanner | undefined
  #left: number
  #taken = 0

  /** `length`: length of a body of kind `length`. */
  constructor(kind: BodyKind, length = 0) {
    this.kind = kind
    this.#left = kind === 'length' ? length : 0
    this.chunks = kind === 'chunked' ? new ChunkScanner() : undefined
  }

  /** Whether the body is complete. A body that ends with its connection never reports it. */
  get done(): boolean {
    if (this.chunks) return this.chunks.done
    return this.kind !== 'close' && this.#left === 0
  }

  /** Bytes of payload so far. */
  get payload(): number {
    return this.chunks?.payload ?? this.#taken
  }

  /** The trailer section, once done: lines with their CRLF, latin1. */
  get trailers(): string {
    return this.chunks?.trailers ?? ''
  }

  /**
   * Reads from `from` on and reports payload to `sink`.
   * @returns the end of the body or of the buffer; -1: the body is invalid
   */
  take(chunk: Buffer, from: number, sink?: PayloadSink): number {
    if (this.chunks) return this.chunks.scan(chunk, from, sink)
    const end = this.kind === 'close' ? chunk.length : Math.min(chunk.length, from + this.#left)
    if (this.kind === 'length') this.#left -= end - from
    this.#taken += end - from
    if (end > from) sink?.payload(chunk, from, end)
    return end
  }
}

/** Returns the body of a request with this framing. */
export const requestBody = (length: number | undefined, chunked: boolean): Body =>
  new Body(chunked ? 'chunked' : length === undefined || length === 0 ? 'none' : 'length', length)

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
