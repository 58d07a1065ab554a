import { Buffer } from 'node:buffer'
import { madeGarbage } from '../../memory.ts'
import type { BodyKind } from '../head/response-head.ts'
import { MAX_TRAILERS, readTrailers } from '../head/trailers.ts'

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

/** Last chunk of a body without trailers (RFC 9112, section 7.1). */
export const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** Returns the payload, which is not empty, as one chunk of a chunked body: a copy. */
export function chunkOf(payload: Buffer): Buffer {
  const size = `${payload.length.toString(16)}\r\n`
  const chunk = Buffer.allocUnsafe(size.length + payload.length + 2)
  madeGarbage(chunk.length)
  chunk.write(size, 0, 'latin1')
  chunk.set(payload, size.length)
  chunk.write('\r\n', size.length + payload.length, 'latin1')
  return chunk
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

/** Maximum digits of a chunk's size: below 2^31, which 32-bit readers parse alike. */
const MAX_DIGITS = 8
const MAX_SIZE = 0x7fff_ffff
/** Maximum bytes of all extensions of a body. */
const MAX_EXTENSIONS = 16_384

const CR = 0x0d
const LF = 0x0a
const SEMICOLON = 0x3b
const QUOTE = 0x22
const BACKSLASH = 0x5c
const TAB = 0x09

const SIZE = 0
const EXTENSION = 1
const QUOTED = 2
const ESCAPED = 3
const SIZE_LF = 4
const DATA = 5
const DATA_CR = 6
const DATA_LF = 7
const TRAILERS = 8
const OVER = 9

/** Receiver of the payload's position in a buffer, for visitors that do not get the framing. */
interface PayloadSink {
  /** Reports payload from `start` to before `end`; the bytes before it may be overwritten. */
  payload(chunk: Buffer, start: number, end: number): void
}

/**
 * Follows a chunked body through its buffers, strictly (RFC 9112, section 7.1): no bare LF or CR, no blanks around sizes, bounded
 * extensions and trailers. Copies only trailers.
 */
export class ChunkScanner {
  /** Bytes of payload so far. */
  payload = 0
  /** Offset at which the trailer section begins or continues in the last buffer. -1: not in that buffer, or the section is empty. */
  trailersAt = -1
  #state = SIZE
  #size = 0
  #digits = 0
  #extensions = 0
  #trailers = ''

  get done(): boolean {
    return this.#state === OVER
  }

  /** The trailer section, once done: lines with their CRLF, latin1. */
  get trailers(): string {
    return this.done ? this.#trailers : ''
  }

  /**
   * Reads from `from` on and reports payload to `sink`.
   * @returns the end of the body or of the buffer; -1: the body is invalid
   */
  scan(chunk: Buffer, from: number, sink?: PayloadSink): number {
    let at = from
    this.trailersAt = -1
    while (at < chunk.length && this.#state !== OVER) {
      if (this.#state === DATA) at = this.#data(chunk, at, sink)
      else if (this.#state === TRAILERS) at = this.#trailer(chunk, at)
      else if (this.#line(chunk[at] ?? 0)) at++
      else return -1
      if (at < 0) return -1
    }
    return at
  }

  #data(chunk: Buffer, at: number, sink: PayloadSink | undefined): number {
    const end = Math.min(chunk.length, at + this.#size)
    this.#size -= end - at
    this.payload += end - at
    if (this.#size === 0) this.#state = DATA_CR
    sink?.payload(chunk, at, end)
    return end
  }

  /** Reads one byte of a line that begins or ends a chunk. Returns false when it is invalid. */
  #line(code: number): boolean {
    switch (this.#state) {
      case SIZE:
        return this.#sizeByte(code)
      case EXTENSION:
      case QUOTED:
      case ESCAPED:
        return ++this.#extensions <= MAX_EXTENSIONS && this.#extensionByte(code)
      case SIZE_LF:
        this.#digits = 0
        return this.#expect(code, LF, this.#size === 0 ? TRAILERS : DATA)
      case DATA_CR:
        return this.#expect(code, CR, DATA_LF)
      default:
        return this.#expect(code, LF, SIZE)
    }
  }

  #expect(code: number, expected: number, next: number): boolean {
    this.#state = next
    return code === expected
  }

  #sizeByte(code: number): boolean {
    const digit = hex(code)
    if (digit >= 0) {
      this.#size = this.#digits === 0 ? digit : this.#size * 16 + digit
      return ++this.#digits <= MAX_DIGITS && this.#size <= MAX_SIZE
    }
    if (this.#digits === 0) return false
    this.#state = code === CR ? SIZE_LF : EXTENSION
    return code === CR || code === SEMICOLON
  }

  #extensionByte(code: number): boolean {
    if (this.#state === ESCAPED) this.#state = QUOTED
    else if (this.#state === QUOTED) this.#state = code === QUOTE ? EXTENSION : code === BACKSLASH ? ESCAPED : QUOTED
    else if (code === CR) return this.#expect(code, CR, SIZE_LF)
    else if (code === QUOTE) this.#state = QUOTED
    return code === TAB || (code >= 0x20 && code !== 0x7f)
  }

  #trailer(chunk: Buffer, at: number): number {
    // Nearly all trailer sections are empty.
    if (this.#trailers === '' && chunk[at] === CR && chunk[at + 1] === LF) {
      this.#state = OVER
      return at + 2
    }
    if (this.trailersAt < 0) this.trailersAt = at
    const lineEnd = chunk.indexOf(LF, at)
    const end = lineEnd < 0 ? chunk.length : lineEnd + 1
    if (this.#trailers.length + end - at > MAX_TRAILERS) return -1
    this.#trailers += chunk.toString('latin1', at, end)
    if (lineEnd < 0) return end
    return this.#trailerLine() ? end : -1
  }

  /** Checks the section whenever a line is complete, so that no invalid line is forwarded completely. */
  #trailerLine(): boolean {
    const last = this.#trailers.endsWith('\r\n\r\n') || this.#trailers === '\r\n'
    const lines = last ? this.#trailers.slice(0, -2) : this.#trailers
    if (!readTrailers(lines)) return false
    if (last) {
      this.#trailers = lines
      this.#state = OVER
    }
    return true
  }
}

function hex(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
