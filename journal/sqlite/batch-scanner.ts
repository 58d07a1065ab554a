import { Buffer } from 'node:buffer'
import { truncatedBatch, TUNNEL } from '../request-text.ts'

const NEWLINE = 10
const DASH = 45
const DIGIT = 48
const SEVEN = 55
const LETTER_E = 101
/** Characters of a UUIDv7, and where the digits of its time end (RFC 9562, section 5.7). */
const ID_LENGTH = 36
const TIME_END = 13

/** Numbers of no more digits are whole in each step. */
const SURE_DIGITS = 15

const NONE = 0xff
/** What a byte stands for as a digit in lower case; else `NONE`. */
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = '0123456789abcdef'.indexOf(String.fromCharCode(byte))
  return value < 0 ? NONE : value
})
/** The byte that is to be at each place of a UUIDv7; `NONE`: a digit. */
const PLACES = Uint8Array.from('????????-????-7???-????-????????????', (place) => ({ '-': DASH, '7': SEVEN })[place] ?? NONE)

/**
 * Goes through a batch of requests (request-text.ts), and reads of each what it is summed up by. Tens of thousands a second are read on a processor that serves
 * traffic, so it makes no object for any of them, and no text that the one before had as well.
 */
export class BatchScanner {
  /** Where its lines begin in the batch, and where the next ones do. */
  start = 0
  end = 0
  /** When its id was made, in milliseconds since the epoch; NaN: that is no UUIDv7. */
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
  /** Where the address of the one before is, and its end. */
  #ipAt = 0
  #ipEnd = 0

  constructor(batch: Uint8Array) {
    this.#bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
  }

  get tunnel(): string {
    return this.#tunnel ?? ''
  }

  /** Reads the next one; false: there is none. @throws MooringError `invalid_record` when it is not whole */
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

  /** Goes past a line; returns where its end is. */
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

  /** Whether it is that of the one before. */
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
      if (byte < DIGIT || byte > DIGIT + 9 || at - start > SURE_DIGITS) break
      number = 10 * number + (byte - DIGIT)
    }
    const text = bytes.toString('latin1', start, this.#skip())
    return text === '' ? NaN : Number(text)
  }

  #timeAt(start: number): number {
    const bytes = this.#bytes
    if (bytes[start + ID_LENGTH] !== NEWLINE) return NaN
    let time = 0
    for (let place = 0; place < ID_LENGTH; place++) {
      const byte = bytes[start + place] ?? 0
      const wanted = PLACES[place] ?? NONE
      if (byte === wanted) continue
      const digit = DIGITS[byte] ?? NONE
      if (wanted !== NONE || digit === NONE) return NaN
      if (place < TIME_END) time = 16 * time + digit
    }
    return time
  }
}
