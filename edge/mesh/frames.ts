import { Buffer } from 'node:buffer'
import { MooringError } from '../../shared/errors.ts'

/**
 * Frames between edges: type (1 byte), payload length (3), channel number (4), then the payload, all big-endian. A channel is named by
 * the number that the receiver of the frame gave it, as in SSH (RFC 4254, section 5); in `open` by the sender's number.
 */
export const Frame = {
  /** JSON: identity of the sender. The first frame in either direction. */
  hello: 1,
  /** JSON: sessions that were added, have answered, or were removed. */
  sessions: 2,
  ping: 3,
  pong: 4,
  /** Length of a session's id (1), the id, a line for the terminal of its client (UTF-8). */
  notice: 5,
  /** Window (4), visitor's port (2), length of the visitor's address (1), the address, the session's id. */
  open: 10,
  /** Number at the sender (4), window (4). */
  opened: 11,
  /** One byte: a {@link Refused}. */
  refused: 12,
  /** Additional bytes that may be sent (4). */
  window: 13,
  data: 14,
  /** No more data follows. */
  end: 15,
  close: 16,
} as const
export type Frame = (typeof Frame)[keyof typeof Frame]

/** Codes for refusing a channel. */
export const Refused = { connectFailed: 1, prohibited: 2, sessionLost: 3 } as const
export type Refused = (typeof Refused)[keyof typeof Refused]

export const HEADER_BYTES = 8
/** Maximum payload of a frame in bytes; senders must respect it. */
export const PAYLOAD_BYTES = 64 * 1024

const SIZES: ReadonlyMap<number, { readonly least: number; readonly most: number }> = new Map([
  [Frame.hello, { least: 2, most: 4 * 1024 }],
  [Frame.sessions, { least: 2, most: PAYLOAD_BYTES }],
  [Frame.ping, { least: 0, most: 0 }],
  [Frame.pong, { least: 0, most: 0 }],
  [Frame.notice, { least: 3, most: 2 * 1024 }],
  [Frame.open, { least: 8, most: 512 }],
  [Frame.opened, { least: 8, most: 8 }],
  [Frame.refused, { least: 1, most: 1 }],
  [Frame.window, { least: 4, most: 4 }],
  [Frame.data, { least: 1, most: PAYLOAD_BYTES }],
  [Frame.end, { least: 0, most: 0 }],
  [Frame.close, { least: 0, most: 0 }],
])

export class FrameError extends MooringError {
  constructor(message: string) {
    super('mesh_protocol', message)
  }
}

/** Receiver of parsed frames. */
export interface FrameReader {
  /** Handles a complete frame other than data. */
  control(type: Frame, channel: number, payload: Buffer): void
  /** Part of a data frame, as it arrives: data frames are not gathered. */
  data(channel: number, part: Buffer): void
}

/** Encodes one frame. */
export function frame(type: Frame, channel: number, payload?: Buffer): Buffer {
  const length = payload?.length ?? 0
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + length)
  writeHeader(bytes, type, length)
  bytes.writeUInt32BE(channel, 4)
  if (payload) bytes.set(payload, HEADER_BYTES)
  return bytes
}

/** Encodes the header of a data frame. The payload is sent after it without a copy. */
export function dataHeader(channel: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES)
  writeHeader(bytes, Frame.data, length)
  bytes.writeUInt32BE(channel, 4)
  return bytes
}

function writeHeader(bytes: Buffer, type: Frame, length: number): void {
  bytes.writeUInt32BE(((type << 24) | length) >>> 0, 0)
}

const NONE = Buffer.alloc(0)

/** Parses frames from a stream of bytes, with at most one small frame in memory. */
export class FrameParser {
  readonly #reader: FrameReader
  /** Beginning of an incomplete frame. */
  #partial: Buffer = NONE
  #filled = 0
  #channel = 0
  /** Bytes of the current data frame that are still to come. */
  #left = 0

  constructor(reader: FrameReader) {
    this.#reader = reader
  }

  /** Whether the parser is between two frames. */
  get atRest(): boolean {
    return this.#left === 0 && this.#filled === 0
  }

  /**
   * Parses a chunk.
   * @throws FrameError when a frame is invalid; nothing after it can be parsed
   */
  push(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) at = this.#left > 0 ? this.#takeData(chunk, at) : this.#takeFrame(chunk, at)
  }

  #takeData(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left)
    this.#left -= end - at
    this.#reader.data(this.#channel, at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end))
    return end
  }

  #takeFrame(chunk: Buffer, at: number): number {
    if (this.#filled > 0) return this.#fill(chunk, at)
    if (chunk.length - at < HEADER_BYTES) return this.#begin(HEADER_BYTES, chunk, at)
    const { type, length } = headerOf(chunk, at)
    const whole = HEADER_BYTES + (type === Frame.data ? 0 : length)
    if (chunk.length - at < whole) return this.#begin(whole, chunk, at)
    this.#whole({ type, length }, chunk.subarray(at, at + whole))
    return at + whole
  }

  #begin(size: number, chunk: Buffer, at: number): number {
    this.#partial = Buffer.allocUnsafe(size)
    this.#filled = chunk.copy(this.#partial, 0, at)
    return chunk.length
  }

  #fill(chunk: Buffer, at: number): number {
    const copied = chunk.copy(this.#partial, this.#filled, at, at + this.#partial.length - this.#filled)
    this.#filled += copied
    if (this.#filled < this.#partial.length) return at + copied
    const header = headerOf(this.#partial, 0)
    const whole = HEADER_BYTES + (header.type === Frame.data ? 0 : header.length)
    const bytes = this.#partial
    if (whole > bytes.length) {
      this.#partial = Buffer.allocUnsafe(whole)
      bytes.copy(this.#partial)
      return at + copied
    }
    this.#partial = NONE
    this.#filled = 0
    this.#whole(header, bytes)
    return at + copied
  }

  #whole({ type, length }: Header, bytes: Buffer): void {
    const channel = bytes.readUInt32BE(4)
    if (type !== Frame.data) {
      this.#reader.control(type, channel, bytes.subarray(HEADER_BYTES))
      return
    }
    this.#channel = channel
    this.#left = length
  }
}

interface Header {
  readonly type: Frame
  readonly length: number
}

/**
 * Reads a frame header.
 * @throws FrameError when type or length is invalid
 */
function headerOf(bytes: Buffer, at: number): Header {
  const word = bytes.readUInt32BE(at)
  const [type, length] = [word >>> 24, word & 0xff_ffff]
  const size = SIZES.get(type)
  if (!size) throw new FrameError(`unknown frame type ${type}`)
  if (length < size.least || length > size.most) throw new FrameError(`invalid length ${length} of a frame of type ${type}`)
  return { type: type as Frame, length }
}
