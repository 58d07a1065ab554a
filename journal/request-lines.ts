import { Buffer } from 'node:buffer'
import { METHOD_MAX } from '../shared/tunnel-decisions.ts'
import type { RequestRecord } from './port.ts'
import { PATH_MAX, TUNNEL } from './request-text.ts'

/** Initial capacity of a batch in bytes: some 400 requests. */
const ROOM = 64 * 1024
/** Maximum bytes of UTF-8 for one UTF-16 code unit. */
const UNIT_BYTES = 3
/** Bytes of the other fields of a request: line ends, five numbers of at most 25 characters, origin and protocol. */
const OTHER_BYTES = 256

const NEWLINE = 10
const RETURN = 13
const SPACE = 32
const ASCII_MAX = 0x7f
const DIGIT = 48

/**
 * Writer of a batch of requests in the format of request-text.ts, straight into one buffer. Concatenating strings and encoding
 * them afterwards takes twice the time on the thread that serves traffic: each part is an object of its own.
 */
export class RequestLines {
  #bytes = Buffer.allocUnsafeSlow(ROOM)
  #at = 0
  readonly #known: string | undefined
  /** Tunnel of the previous request. */
  #tunnel: string | undefined
  /**
   * Time of the previous request, as a number and as text. Successive requests mostly share it, and formatting a number of this
   * size takes as long as all the rest.
   */
  #time = { at: 0, text: '0' }

  /** Creates an empty batch. Requests of the tunnel `known` get no line with its uid; the reader supplies it. */
  constructor(known?: string) {
    this.#known = this.#tunnel = known
  }

  add(record: RequestRecord): void {
    const { id, tunnel, sourceIp, reason } = record
    const path = record.path.length > PATH_MAX ? record.path.slice(0, PATH_MAX) : record.path
    const method = record.method.length > METHOD_MAX ? record.method.slice(0, METHOD_MAX) : record.method
    if (record.at !== this.#time.at) this.#time = { at: record.at, text: String(record.at) }
    const units = id.length + tunnel.length + method.length + path.length + sourceIp.length + (reason?.length ?? 0)
    const bytes = this.#reserve(UNIT_BYTES * units + OTHER_BYTES)
    const start = tunnel === this.#tunnel ? this.#at : putTunnel(bytes, this.#at, tunnel)
    let at = putText(bytes, start, id)
    // A line that begins with `@` would be read as a tunnel's.
    if (bytes[start] === TUNNEL) bytes[start] = SPACE
    at = putText(bytes, at, this.#time.text)
    at = putText(bytes, at, method)
    at = putText(bytes, at, path)
    at = putNumber(bytes, at, record.status)
    at = putNumber(bytes, at, record.durationMs)
    at = putNumber(bytes, at, record.bytesIn)
    at = putNumber(bytes, at, record.bytesOut)
    at = putText(bytes, at, sourceIp)
    at = putText(bytes, at, record.origin)
    at = putText(bytes, at, reason ?? '')
    // Assigned last, so that a request that fails half-way leaves nothing in the batch.
    this.#at = putText(bytes, at, record.protocol)
    this.#tunnel = tunnel
  }

  /** Returns the requests that were added since the last call, UTF-8. */
  take(): Uint8Array {
    const batch = new Uint8Array(this.#bytes.subarray(0, this.#at))
    this.#at = 0
    this.#tunnel = this.#known
    if (this.#bytes.length > ROOM) this.#bytes = Buffer.allocUnsafeSlow(ROOM)
    return batch
  }

  #reserve(more: number): Buffer {
    if (this.#at + more > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * this.#bytes.length + more)
      larger.set(this.#bytes.subarray(0, this.#at))
      this.#bytes = larger
    }
    return this.#bytes
  }
}

/** Returns the records as one batch. */
export function requestBatch(records: readonly RequestRecord[]): Uint8Array {
  const lines = new RequestLines()
  for (const record of records) lines.add(record)
  return lines.take()
}

function putTunnel(bytes: Buffer, start: number, tunnel: string): number {
  bytes[start] = TUNNEL
  return putText(bytes, start + 1, tunnel)
}

/** Writes one line; line ends in the text become spaces. Returns the start of the next line. */
function putText(bytes: Buffer, start: number, text: string): number {
  let at = start
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > ASCII_MAX) return putUtf8(bytes, start, text)
    bytes[at++] = unit === NEWLINE || unit === RETURN ? SPACE : unit
  }
  bytes[at] = NEWLINE
  return at + 1
}

function putUtf8(bytes: Buffer, start: number, text: string): number {
  const end = start + bytes.write(text, start)
  for (let at = start; at < end; at++) if (bytes[at] === NEWLINE || bytes[at] === RETURN) bytes[at] = SPACE
  bytes[end] = NEWLINE
  return end + 1
}

function putNumber(bytes: Buffer, start: number, number: number): number {
  if ((number | 0) !== number || number < 0) return putText(bytes, start, String(number))
  let digits = 1
  for (let power = 10; power <= number; power *= 10) digits += 1
  let rest = number
  for (let at = start + digits - 1; at >= start; at--) {
    const tenth = (rest / 10) | 0
    bytes[at] = DIGIT + rest - 10 * tenth
    rest = tenth
  }
  bytes[start + digits] = NEWLINE
  return start + digits + 1
}
