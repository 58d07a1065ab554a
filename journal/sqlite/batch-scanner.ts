import { Buffer } from 'node:buffer'
import { truncatedBatch, TUNNEL } from '../request-text.ts'

const NEWLINE = 10
const DASH = 45
const DIGIT = 48
const SEVEN = 55
const LETTER_E = 101
/** Length of a UUIDv7 as text, and the end of the digits of its time (RFC 9562, section 5.7). */
const ID_LENGTH = 36
const TIME_END = 13

/** Maximum number of digits for which each step stays an exact integer. */
const EXACT_DIGITS = 15

const NONE = 0xff
/** Value of each byte as a hexadecimal digit in lower case; `NONE` for other bytes. */
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = '0123456789abcdef'.indexOf(String.fromCharCode(byte))
  return value < 0 ? NONE : value
})
/** Required byte at each position of a UUIDv7; `NONE` for any digit. */
const ID_PATTERN = Uint8Array.from(
  '????????-????-7???-????-????????????',
  (position) => ({ '-': DASH, '7': SEVEN })[position] ?? NONE,
)

/**
 * Scanner of a batch of requests (request-text.ts), which reads the fields that sums need. It reads tens of thousands of requests
 * a second on a processor that also serves traffic. Therefore it allocates no object for a request, and no text that equals the
 * previous request's.
 */
export class BatchScanner {
  /** Start and end of the request's lines in the batch. */
  start = 0
  end = 0
  /** Creation time of the id in milliseconds since the epoch; NaN for an id that is not a UUIDv7. */
  time = NaN
  at = NaN
  status = NaN
  durationMs = NaN
  bytesIn = NaN
  bytesOut = NaN
  edge = false
  ip = ''
  #tunnel: string | undefined
  readonly #bytes: Buffer
  #next = 0
  /** Start and end of the previous request's address. */
  #ipAt = 0
  #ipEnd = 0

  constructor(batch: Uint8Array) {
    this.#bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
  }

  get tunnel(): string {
    return this.#tunnel ?? ''
  }

  /** Reads the next request. Returns false at the end. @throws MooringError `invalid_record` when the batch is truncated */
  next(): boolean {
    while (this.#bytes[this.#next] === TUNNEL) this.#readTunnel()
    if (this.#next >= this.#bytes.length) return false
    if (this.#tunnel === undefined) throw truncatedBatch()
    this.start = this.#next
    this.time = this.#timeAt(this.start)
    this.#skip()
    this.at = this.#number()
    this.#skip()
    this.#skip()
    this.status = this.#number()
    this.durationMs = this.#number()
    this.bytesIn = this.#number()
    this.bytesOut = this.#number()
    this.#readIp()
    this.edge = this.#bytes[this.#next] === LETTER_E
    this.#skip()
    this.#skip()
    this.#skip()
    this.end = this.#next
    return true
  }

  /** Skips a line. Returns the position of its line end. */
  #skip(): number {
    const bytes = this.#bytes
    for (let at = this.#next; at < bytes.length; at++) {
      if (bytes[at] !== NEWLINE) continue
      this.#next = at + 1
      return at
    }
    throw truncatedBatch()
  }

  #readTunnel(): void {
    const start = this.#next + 1
    this.#tunnel = this.#bytes.toString('utf8', start, this.#skip())
  }

  #readIp(): void {
    const start = this.#next
    const length = this.#ipEnd - this.#ipAt
    if (this.#isIp(start, length)) this.#next += length + 1
    else this.ip = this.#bytes.toString('utf8', start, this.#skip())
    this.#ipAt = start
    this.#ipEnd = this.#next - 1
  }

  /** Whether the address equals the previous request's. */
  #isIp(start: number, length: number): boolean {
    const bytes = this.#bytes
    for (let at = 0; at < length; at++) if (bytes[start + at] !== bytes[this.#ipAt + at]) return false
    return length > 0 && bytes[start + length] === NEWLINE
  }

  #number(): number {
    const bytes = this.#bytes
    const start = this.#next
    let number = 0
    for (let at = start; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (byte === NEWLINE && at > start) {
        this.#next = at + 1
        return number
      }
      if (byte < DIGIT || byte > DIGIT + 9 || at - start > EXACT_DIGITS) break
      number = 10 * number + (byte - DIGIT)
    }
    const text = bytes.toString('latin1', start, this.#skip())
    return text === '' ? NaN : Number(text)
  }

  #timeAt(start: number): number {
    const bytes = this.#bytes
    if (bytes[start + ID_LENGTH] !== NEWLINE) return NaN
    let time = 0
    for (let position = 0; position < ID_LENGTH; position++) {
      const byte = bytes[start + position] ?? 0
      const required = ID_PATTERN[position] ?? NONE
      if (byte === required) continue
      const digit = DIGITS[byte] ?? NONE
      if (required !== NONE || digit === NONE) return NaN
      if (position < TIME_END) time = 16 * time + digit
    }
    return time
  }
}
