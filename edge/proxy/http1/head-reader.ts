import { Buffer } from 'node:buffer'
import { HeadBuffer, type HeadState, NOTHING } from './head-buffer.ts'

/** Longest head that is remembered: a connection that waits shall cost little. */
const MAX_KNOWN = 2_048
/** Up to so many bytes a loop costs less than a call of Buffer's own. */
const FEW = 96

/** Strict, and of the bytes alone: the same bytes are always read alike. The text is latin1, up to the CRLF of the last field; the bytes are the same. */
export type ReadHead<Read> = (text: string, bytes: Uint8Array) => Read

/**
 * Reads the heads of one connection, one after the other. Whoever asks, or answers, in the very bytes of the time before, as most who keep a connection do,
 * is not read again.
 */
export class HeadReader<Read> {
  /** Once whole: what was read. */
  head: Read
  readonly #read: ReadHead<Read>
  readonly #buffer = new HeadBuffer()
  #rest: Buffer = NOTHING
  /** The last head with its empty line, in memory of our own. */
  #known: Buffer
  #knownBytes = 0

  /** `none`: what `head` is before the first. */
  constructor(read: ReadHead<Read>, none: Read) {
    this.#read = read
    this.head = none
    this.#known = NOTHING
  }

  /** Whether no part of a head has come. */
  get isEmpty(): boolean {
    return this.#buffer.isEmpty
  }

  /** Of the last one that was read, or as much as is taken of one that is too large: latin1. */
  get text(): string {
    return this.#buffer.text
  }

  /** Once whole: what follows the head, for as long as the chunk is valid. It is given out once, and not kept. */
  takeRest(): Buffer {
    const rest = this.#rest
    this.#rest = NOTHING
    return rest
  }

  push(chunk: Buffer): HeadState {
    if (this.#buffer.isEmpty && this.#isKnown(chunk)) {
      // Most of the time nothing follows, and an empty part of the chunk would be one more object for each request.
      this.#rest = chunk.length === this.#knownBytes ? NOTHING : chunk.subarray(this.#knownBytes)
      return 'whole'
    }
    const state = this.#buffer.push(chunk)
    if (state !== 'whole') return state
    const { text, bytes, rest } = this.#buffer
    this.head = this.#read(text, bytes)
    this.#rest = rest.length === 0 ? NOTHING : rest
    this.#remember(bytes)
    this.#buffer.releaseChunk()
    return 'whole'
  }

  #isKnown(chunk: Buffer): boolean {
    const known = this.#known
    const length = this.#knownBytes
    if (length === 0 || chunk.length < length) return false
    if (length > FEW) return chunk.compare(known, 0, length, 0, length) === 0
    for (let at = length - 1; at >= 0; at--) if (chunk[at] !== known[at]) return false
    return true
  }

  #remember(bytes: Buffer): void {
    const length = bytes.length + 2
    this.#knownBytes = length > MAX_KNOWN ? 0 : length
    if (this.#knownBytes === 0) return
    if (this.#known.length < length) this.#known = Buffer.allocUnsafeSlow(length)
    this.#known.set(bytes)
    this.#known.write('\r\n', bytes.length, 'latin1')
  }
}
