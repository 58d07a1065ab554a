import { Buffer } from 'node:buffer'
import { MAX_HEAD } from '../head/fields.ts'

const END = Buffer.from('\r\n\r\n')
const CR = 0x0d
const LF = 0x0a
const FIRST_SIZE = 1024
export const NOTHING = Buffer.alloc(0)

/** `bad`: a line ends with a bare LF. `large`: no end of the head in {@link MAX_HEAD} bytes. */
export type HeadState = 'more' | 'whole' | 'large' | 'bad'

/** Gathers the bytes of a head. One that comes in one piece, as nearly all do, is not copied. */
export class HeadBuffer {
  /** Once whole: the head up to the CRLF of its last line, latin1. Too large: as much of it as is taken. */
  text = ''
  /** The same as bytes, valid until the next call. */
  bytes: Buffer = NOTHING
  /** Once whole: what follows it. */
  rest: Buffer = NOTHING
  #held: Buffer | undefined
  #length = 0
  /** An empty line has come before the head. */
  #skipped = false

  get isEmpty(): boolean {
    return this.#length === 0 && !this.#skipped
  }

  /** One empty line before a head is no part of it (RFC 9112, section 2.2), however it comes. */
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

  /** What came with the head is of no more use: even an empty part of a chunk keeps all that was read with it. */
  releaseChunk(): void {
    this.bytes = this.rest = NOTHING
  }

  reset(): void {
    this.#held = undefined
    this.#length = 0
    this.#skipped = false
  }

  /** What is gathered by then is a first byte of it at the most: the rest begins anew. */
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

  /** Keeps the part in memory of its own, twice as much whenever it is full: a head in single bytes costs no more than one in large pieces. */
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
