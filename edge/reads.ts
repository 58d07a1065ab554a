import { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { madeGarbage } from './buffer-garbage.ts'
import { ownBytes } from './own-bytes.ts'

/** What one read takes at the most: as much as Node's own. */
const READ_BYTES = 64 * 1024
/** Reads that a paused socket keeps apart: each is an object as well, and a visitor may send single bytes. */
const MOST_APART = 64

/** One for all sockets: a read is over when its reader returns. */
const buffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** Where small chunks that last lie side by side, until it is full. */
let block = Buffer.alloc(0)
let blockAt = 0

/** Where Node keeps what `onread` of a socket says; undefined in a Node that keeps it elsewhere. */
const [BUFFER, CALLBACK] = (() => {
  const symbols = Object.getOwnPropertySymbols(new Socket())
  return ['kBuffer', 'kBufferCb'].map((name) => symbols.find(({ description }) => description === name))
})()

/** A connected socket, as far as `onread` is about it. */
interface Readied {
  readonly _handle?: { readonly useUserBuffer?: (buffer: Uint8Array) => void } | null
  [symbol: symbol]: unknown
}

/**
 * Has all that comes by a socket read, from now on, while it is not paused. A chunk is valid until `read` returns: whatever keeps it, or hands it on, takes
 * what {@link lasting} makes of it.
 *
 * It is the `onread` that Node has for connections that it opens, which it does not offer for those that it accepts: without a buffer of 64 KiB made, cut and
 * collected for each read, and without a stream's bookkeeping (docs/decisions, "Sockets are read into one buffer").
 */
export function readAll(socket: Socket, read: (chunk: Buffer) => void): void {
  const readied = socket as unknown as Readied
  let apart = 0
  let isJoining = false
  // What was read before or while it was paused; and everything, where it cannot be had otherwise.
  socket.on('data', (chunk: Buffer) => {
    if (isJoining) return
    madeGarbage(chunk.length)
    read(chunk)
  })
  if (BUFFER === undefined || CALLBACK === undefined || !readied._handle?.useUserBuffer) return

  /** False: no more until that has been read. */
  function keep(chunk: Buffer): boolean {
    const more = socket.push(ownBytes(chunk))
    apart += 1
    if (apart >= MOST_APART && socket.isPaused()) join()
    return more
  }

  /** A paused stream gives all that it has as one piece. */
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
 * As {@link lasting}, but small chunks lie side by side: a buffer for each would cost as much as all else that is done with it. Whatever keeps one keeps a block of 64 KiB, so
 * it is for those who are known.
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

/** Pauses a socket as a stream is: some of what comes is read and kept, so that its end or a reset is noticed. `resume` of the socket ends it. */
export function pauseReads(socket: Socket): void {
  // Its own, once it has a buffer, stops all reading, and yet lets those records of TLS through that have come already.
  Duplex.prototype.pause.call(socket)
}

/** What stays valid of a chunk, or of a part of one: itself, or a copy when it is in the one buffer. */
export function lasting(chunk: Buffer): Buffer {
  if (chunk.buffer !== buffer.buffer) return chunk
  madeGarbage(chunk.length)
  return ownBytes(chunk)
}
