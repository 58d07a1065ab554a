import { Buffer } from 'node:buffer'
import { MAX_HEAD } from '../head/fields.ts'

/** Longest head that is remembered, in bytes: an idle connection should use little memory. */
const MAX_KNOWN = 2_048
/** Size up to which a loop costs less than a call of Buffer's own function. */
const FEW = 96

/**
 * Strict parser of a head that depends on its bytes only. The text is latin1, up to the CRLF of the last field; the bytes are the same.
 */
type ReadHead<Read> = (text: string, bytes: Uint8Array) => Read

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

const END = Buffer.from('\r\n\r\n')
const CR = 0x0d
const LF = 0x0a
const FIRST_SIZE = 1024
const NOTHING = Buffer.alloc(0)

/** `bad`: a line ends with a bare LF. `large`: the head does not end within {@link MAX_HEAD} bytes. */
type HeadState = 'more' | 'whole' | 'large' | 'bad'

/** Gathers the bytes of a head. A head that arrives in one chunk, as nearly all do, is not copied. */
export class HeadBuffer {
  /** Complete head up to the CRLF of its last line, latin1. When too large: its beginning. */
  text = ''
  /** The head as bytes, valid until the next call. */
  bytes: Buffer = NOTHING
  /** Bytes after the complete head. */
  rest: Buffer = NOTHING
  #held: Buffer | undefined
  #length = 0
  /** Whether an empty line came before the head. */
  #skipped = false

  get isEmpty(): boolean {
    return this.#length === 0 && !this.#skipped
  }

  /** Adds a chunk. One empty line before the head is skipped (RFC 9112, section 2.2), also when it is split. */
  push(chunk: Buffer): HeadState {
    const gathered = this.#held ? this.#append(chunk) : chunk
    const isEmptyLine = !this.#skipped && gathered[0] === CR && gathered[1] === LF
    const [part, data] = isEmptyLine ? this.#skip(gathered) : [chunk, gathered]
    const end = data.indexOf(END, Math.max(0, this.#length - 3))
    if (end >= 0) return this.#take(data, end)
    const wrong = this.#wrong(data)
    if (wrong) return wrong
    if (!this.#held) this.#append(part)
    this.#length = data.length
    return 'more'
  }

  /** Releases the chunk of the head: even an empty part of a chunk keeps its whole buffer. */
  releaseChunk(): void {
    this.bytes = this.rest = NOTHING
  }

  reset(): void {
    this.#held = undefined
    this.#length = 0
    this.#skipped = false
  }

  /** Skips an empty line: at most its first byte is gathered by then, so the rest begins anew. */
  #skip(gathered: Buffer): readonly [Buffer, Buffer] {
    this.reset()
    this.#skipped = true
    const part = gathered.subarray(2)
    return [part, part]
  }

  #take(data: Buffer, end: number): HeadState {
    if (end > MAX_HEAD) return this.#large(data)
    this.text = data.toString('latin1', 0, end + 2)
    this.bytes = data.subarray(0, end + 2)
    this.rest = data.subarray(end + 4)
    this.reset()
    return 'whole'
  }

  #wrong(data: Buffer): HeadState | undefined {
    for (let at = data.indexOf(LF, this.#length); at >= 0; at = data.indexOf(LF, at + 1)) {
      if (data[at - 1] !== CR) return 'bad'
    }
    return data.length > MAX_HEAD ? this.#large(data) : undefined
  }

  #large(data: Buffer): HeadState {
    this.text = data.toString('latin1', 0, MAX_HEAD)
    return 'large'
  }

  /** Copies the part to own memory, which doubles when full: a head in single bytes costs no more than one in large chunks. */
  #append(part: Buffer): Buffer {
    const length = this.#length + part.length
    let held = this.#held
    if (held === undefined || held.length < length) {
      held = Buffer.allocUnsafeSlow(Math.max(FIRST_SIZE, 2 * length))
      this.#held?.copy(held, 0, 0, this.#length)
      this.#held = held
    }
    part.copy(held, this.#length)
    return held.subarray(0, length)
  }
}
