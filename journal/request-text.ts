import { Buffer } from 'node:buffer'
import { MooringError } from '../shared/errors.ts'
import type { RequestRecord } from './port.ts'
import { METHOD_MAX } from '../shared/tunnel-decisions.ts'

/*
 * Format of a batch of requests: lines of text. A line of `@` and a tunnel's uid begins the requests of this tunnel. A request
 * has one line for each field: id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason (empty:
 * null), protocol. A batch is one block of memory, which is copied to another thread at a fraction of the cost of objects.
 */

/** Maximum length of a path in characters; the rest is cut off. */
export const PATH_MAX = 2_048
/** Number of lines of a request. */
export const FIELDS = 12
/** First byte of a tunnel's line; no id begins with it. */
export const TUNNEL = 0x40
const TUNNEL_MARK = '@'

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

/** Parses a batch. @throws MooringError `invalid_record` when it is truncated */
export function requestRows(batch: Uint8Array): RequestRecord[] {
  return recordsIn(Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength).toString(), undefined)
}

/** Parses the lines of requests of one tunnel. @throws MooringError `invalid_record` when they are truncated */
export function rowsOfTunnel(lines: string, tunnel: string): RequestRecord[] {
  return recordsIn(lines, tunnel)
}

function recordsIn(text: string, of: string | undefined): RequestRecord[] {
  const lines = text.split('\n')
  const rows: RequestRecord[] = []
  let tunnel = of
  let at = 0
  // `split` returns an empty text after the last line end.
  while (at < lines.length - 1) {
    const line = lines[at] ?? ''
    if (line.startsWith(TUNNEL_MARK)) {
      tunnel = line.slice(1)
      at += 1
      continue
    }
    if (tunnel === undefined || at + FIELDS >= lines.length) throw truncatedBatch()
    rows.push(recordAt(lines, at, tunnel))
    at += FIELDS
  }
  if (lines.at(-1) !== '') throw truncatedBatch()
  return rows
}

/** Creates the error for a batch that does not end where a request ends. No retry can succeed. */
export const truncatedBatch = (): MooringError => new MooringError('invalid_record', 'batch of requests is truncated')

function recordAt(lines: readonly string[], start: number, tunnel: string): RequestRecord {
  const text = (offset: number): string => lines[start + offset] ?? ''
  const number = (offset: number): number => Number(lines[start + offset])
  return {
    id: text(0),
    tunnel,
    at: number(1),
    method: text(2),
    path: text(3),
    status: number(4),
    durationMs: number(5),
    bytesIn: number(6),
    bytesOut: number(7),
    sourceIp: text(8),
    origin: text(9) === 'edge' ? 'edge' : 'backend',
    reason: text(10) === '' ? null : text(10),
    protocol: text(11) === 'h2' ? 'h2' : 'http/1.1',
  }
}

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
