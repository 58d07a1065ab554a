import { Buffer } from 'node:buffer'
import { HeadBuffer, type HeadState, NOTHING } from './head-buffer.ts'

/** Longest head that is remembered, in bytes: an idle connection should use little memory. */
const MAX_KNOWN = 2_048
/** Size up to which a loop costs less than a call of Buffer's own function. */
const FEW = 96

/**
 * Strict parser of a head that depends on its bytes only. The text is latin1, up to the CRLF of the last field; the bytes are the same.
 */
export type ReadHead<Read> = (text: string, bytes: Uint8Array) => Read

/**
 * Reads the heads of one connection, one after the other. A head with the same bytes as the one before, which is usual on a kept
 * connection, is not parsed again.
 */
export class HeadReader<Read> {
  /** Result of parsing the complete head. */
  head: Read
  readonly #read: ReadHead<Read>
  readonly #buffer = new HeadBuffer()
  #rest: Buffer = NOTHING
  /** Last head with its empty line, in own memory. */
  #known: Buffer
  #knownBytes = 0

  /** `none`: value of `head` before the first one. */
  constructor(read: ReadHead<Read>, none: Read) {
    this.#read = read
    this.head = none
    this.#known = NOTHING
  }

  /** Whether no part of a head has arrived. */
  get isEmpty(): boolean {
    return this.#buffer.isEmpty
  }

  /** Text of the last head that was read, or the beginning of one that is too large: latin1. */
  get text(): string {
    return this.#buffer.text
  }

  /** Returns the bytes after the complete head, once; they are valid as long as the chunk. */
  takeRest(): Buffer {
    const rest = this.#rest
    this.#rest = NOTHING
    return rest
  }

  push(chunk: Buffer): HeadState {
    if (this.#buffer.isEmpty && this.#isKnown(chunk)) {
      // Usually nothing follows, and an empty part of the chunk would be one more object for each request.
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
