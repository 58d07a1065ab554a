import { ownBytes } from './own-bytes.ts'

/** Maximum ratio of a chunk's backing memory to its size. Copying every chunk would cost more than it saves. */
const MAX_SHARE = 32

/**
 * Returns the chunk, or a copy where its backing memory is more than 32 times its size. Bytes from a socket are decrypted in place: a
 * client that sends one byte and then much that is ignored would make each byte keep the 64 KiB buffer it was read with.
 */
export function compact(chunk: Buffer): Buffer {
  return chunk.length * MAX_SHARE >= chunk.buffer.byteLength ? chunk : ownBytes(chunk)
}
