import { crc32 } from 'node:zlib'
import { Buffer } from 'node:buffer'
import { FIELDS, TUNNEL } from '../request-text.ts'

/** Content of a frame on disk: requests as text, a connection or an audit entry as JSON. */
export type FrameKind = 'requests' | 'connection' | 'audit'

export interface Frame {
  readonly kind: FrameKind
  readonly records: number
  readonly payload: Buffer
}

const KINDS: readonly FrameKind[] = ['requests', 'connection', 'audit']
/** Length of the header: payload length, number of records, kind, and a CRC-32 of these and the payload. */
export const HEADER_BYTES = 13
const CRC_AT = 9
/** Maximum length of a payload; a header with a larger one is damaged. */
export const PAYLOAD_MAX = 16 * 1024 * 1024

export function encodeFrame({ kind, records, payload }: Frame): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
  frame.writeUInt32LE(payload.length, 0)
  frame.writeUInt32LE(records, 4)
  frame.writeUInt8(KINDS.indexOf(kind), 8)
  payload.copy(frame, HEADER_BYTES)
  frame.writeUInt32LE(checksum(frame, payload), CRC_AT)
  return frame
}

/** Header of a frame, before its checksum is verified. */
export interface FrameHead {
  readonly kind: FrameKind
  readonly records: number
  /** Length of the whole frame. */
  readonly bytes: number
}

/** Reads the header of a frame. Returns undefined when the header is invalid or truncated. */
export function frameHead(bytes: Buffer): FrameHead | undefined {
  if (bytes.length < HEADER_BYTES) return undefined
  const length = bytes.readUInt32LE(0)
  const kind = KINDS[bytes.readUInt8(8)]
  if (kind === undefined || length > PAYLOAD_MAX) return undefined
  return { kind, records: bytes.readUInt32LE(4), bytes: HEADER_BYTES + length }
}

/** Reads a frame. Returns undefined when it is truncated or damaged. */
export function decodeFrame(bytes: Buffer): Frame | undefined {
  const head = frameHead(bytes)
  if (!head || bytes.length < head.bytes) return undefined
  const payload = bytes.subarray(HEADER_BYTES, head.bytes)
  if (bytes.readUInt32LE(CRC_AT) !== checksum(bytes, payload)) return undefined
  return { kind: head.kind, records: head.records, payload }
}

const checksum = (frame: Buffer, payload: Buffer): number => crc32(payload, crc32(frame.subarray(0, CRC_AT)))

const NEWLINE = 10
const EMPTY: Buffer = Buffer.alloc(0)

/** Part of a batch, the content of one frame. */
export interface BatchPart {
  readonly payload: Buffer
  readonly records: number
}

/**
 * Divides a batch of requests (request-text.ts) into batches of at most `most` requests. A truncated request at the end counts as
 * one.
 */
export function* splitRequests(batch: Buffer, most: number): Generator<BatchPart> {
  let tunnel = EMPTY
  /** Line of the tunnel that precedes the lines of a part, unless they begin with one. */
  let heading = EMPTY
  let [start, at] = [0, 0]
  while (at < batch.length) {
    let records = 0
    while (at < batch.length && records < most) {
      const from = at
      if (batch[from] === TUNNEL) {
        at = lineEnd(batch, from)
        tunnel = batch.subarray(from, at)
      } else {
        at = requestEnd(batch, from)
        records += 1
      }
    }
    const lines = batch.subarray(start, at)
    if (records > 0) yield { payload: heading.length > 0 ? Buffer.concat([heading, lines]) : lines, records }
    heading = batch[at] === TUNNEL ? EMPTY : tunnel
    start = at
  }
}

function requestEnd(batch: Buffer, from: number): number {
  let at = from
  for (let field = 0; field < FIELDS; field += 1) at = lineEnd(batch, at)
  return at
}

/** Returns the start of the next line. */
function lineEnd(batch: Buffer, from: number): number {
  const end = batch.indexOf(NEWLINE, from)
  return end < 0 ? batch.length : end + 1
}
