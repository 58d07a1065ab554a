import { Buffer } from 'node:buffer'

// The global `Buffer` is a getter: files on the path of requests and chunks import it, so that each use costs less.

/** Copies bytes into memory of their own, so that the copy does not keep the larger buffer they came in. A string is read as latin1. */
export function ownBytes(bytes: Uint8Array | string): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  if (typeof bytes === 'string') own.write(bytes, 0, 'latin1')
  else own.set(bytes)
  return own
}

/** Maximum ratio of a chunk's backing memory to its size. Copying every chunk would cost more than it saves. */
const MAX_SHARE = 32

/**
 * Returns the chunk, or a copy where its backing memory is more than 32 times its size. Bytes from a socket are decrypted in place: a
 * client that sends one byte and then much that is ignored would make each byte keep the 64 KiB buffer it was read with.
 */
export function compact(chunk: Buffer): Buffer {
  return chunk.length * MAX_SHARE >= chunk.buffer.byteLength ? chunk : ownBytes(chunk)
}
