import { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { madeGarbage, ownBytes } from './memory.ts'

/** Maximum bytes of one read, as in Node. */
const READ_BYTES = 64 * 1024
/** Maximum number of separate reads that a paused socket keeps. Each is an object, and a visitor may send single bytes. */
const MOST_APART = 64

/** Read buffer shared by all sockets: a read is over when its reader returns. */
const buffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** Block in which small copied chunks lie side by side, until it is full. */
let block = Buffer.alloc(0)
let blockAt = 0

/** Symbols under which Node keeps the `onread` settings of a socket; undefined in a Node version that has others. */
const [BUFFER, CALLBACK] = (() => {
  const symbols = Object.getOwnPropertySymbols(new Socket())
  return ['kBuffer', 'kBufferCb'].map((name) => symbols.find(({ description }) => description === name))
})()

/** Internal fields of a connected socket that `onread` uses. */
interface Readied {
  readonly _handle?: { readonly useUserBuffer?: (buffer: Uint8Array) => void } | null
  [symbol: symbol]: unknown
}

/**
 * Calls `read` with all bytes that arrive on a socket from now on, while it is not paused. A chunk is valid until `read` returns: code
 * that keeps it or hands it on must use {@link lasting}.
 *
 * This is Node's `onread` option, which Node offers for outgoing connections but not for accepted ones. It saves making, slicing and
 * collecting a 64 KiB buffer for each read, and the bookkeeping of a stream (docs/decisions, "Sockets are read into one buffer").
 */
export function readAll(socket: Socket, read: (chunk: Buffer) => void): void {
  const readied = socket as unknown as Readied
  let apart = 0
  let isJoining = false
  // Bytes read before this call or while paused; all bytes, where `onread` is not available.
  socket.on('data', (chunk: Buffer) => {
    if (isJoining) return
    madeGarbage(chunk.length)
    read(chunk)
  })
  if (BUFFER === undefined || CALLBACK === undefined || !readied._handle?.useUserBuffer) return

  /** Returns false when reading must stop until these bytes are read. */
  function keep(chunk: Buffer): boolean {
    const more = socket.push(ownBytes(chunk))
    apart += 1
    if (apart >= MOST_APART && socket.isPaused()) join()
    return more
  }

  /** Joins all pending reads of a paused stream into one chunk. */
  function join(): void {
    isJoining = true
    const all = socket.read() as Buffer | null
    isJoining = false
    if (all) socket.unshift(all)
    apart = 1
  }

  readied[BUFFER] = buffer
  readied[CALLBACK] = (length: number) => {
    const chunk = buffer.subarray(0, length)
    if (socket.isPaused() || socket.readableLength > 0) return keep(chunk)
    apart = 0
    read(chunk)
    return true
  }
  readied._handle.useUserBuffer(buffer)
}

/**
 * Copies a chunk as {@link lasting} does, but small chunks lie side by side in a block of 64 KiB: a buffer for each would cost as much
 * as all other work on it. A kept chunk keeps its whole block, so this is for authenticated peers only.
 */
export function inBlock(chunk: Buffer): Buffer {
  if (chunk.length > READ_BYTES / 4 || chunk.buffer !== buffer.buffer) return lasting(chunk)
  madeGarbage(chunk.length)
  if (blockAt + chunk.length > block.length) {
    block = Buffer.allocUnsafeSlow(READ_BYTES)
    blockAt = 0
  }
  const own = block.subarray(blockAt, (blockAt += chunk.length))
  own.set(chunk)
  return own
}

/**
 * Pauses a socket as a stream: some incoming bytes are still read and kept, so that an end or a reset is noticed. `resume` of the
 * socket ends it.
 */
export function pauseReads(socket: Socket): void {
  // With a user buffer, Socket.pause stops all reading, yet still delivers TLS records that have arrived.
  Duplex.prototype.pause.call(socket)
}

/** Returns bytes that stay valid after the read: the chunk itself, or a copy when it lies in the shared read buffer. */
export function lasting(chunk: Buffer): Buffer {
  if (chunk.buffer !== buffer.buffer) return chunk
  madeGarbage(chunk.length)
  return ownBytes(chunk)
}
