import { ownBytes } from './own-bytes.ts'

/** A chunk may hold on to this many times its size: to copy each would cost more than it gives. */
const MAX_SHARE = 32

/**
 * A chunk that holds on to little more than itself. What is read from a socket is decrypted in place: a client that sends a byte and then much
 * that is ignored has each byte hold on to the 64 KiB that it was read with.
 */
export function compact(chunk: Buffer): Buffer {
  return chunk.length * MAX_SHARE >= chunk.buffer.byteLength ? chunk : ownBytes(chunk)
}
