import { Buffer } from 'node:buffer'
import { compact } from '../buffers.ts'

/** Size from which chunks are kept without a copy. */
const BLOCK_BYTES = 16 * 1024
const FIRST_BLOCK_BYTES = 512

/** Queue of bytes in memory of about their size, however small their chunks are. */
export class KeptBytes {
  #blocks: Buffer[] = []
  /** Last block, while it has room. */
  #tail: Buffer | undefined
  #used = 0
  #bytes = 0

  /** Number of queued bytes. */
  get length(): number {
    return this.#bytes
  }

  /** Adds a chunk and takes over its memory. */
  add(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#bytes += chunk.length
    if (chunk.length >= BLOCK_BYTES) {
      this.#seal()
      this.#blocks.push(compact(chunk))
      return
    }
    const tail = this.#tailFor(chunk.length)
    tail.set(chunk, this.#used)
    this.#used += chunk.length
  }

  /** Removes and returns the first block; undefined when the queue is empty. */
  take(): Buffer | undefined {
    if (this.#blocks.length === 0) this.#seal()
    const block = this.#blocks.shift()
    this.#bytes -= block?.length ?? 0
    return block
  }

  clear(): void {
    this.#blocks = []
    this.#tail = undefined
    this.#used = 0
    this.#bytes = 0
  }

  /** Returns a last block with room for this many bytes. It grows to its full size, then another begins. */
  #tailFor(bytes: number): Buffer {
    const needed = this.#used + bytes
    if (this.#tail && needed <= this.#tail.length) return this.#tail
    if (needed > BLOCK_BYTES) {
      this.#seal()
      return this.#tailFor(bytes)
    }
    const grown = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, 2 * needed)))
    if (this.#tail) grown.set(this.#tail.subarray(0, this.#used))
    this.#tail = grown
    return grown
  }

  #seal(): void {
    if (this.#tail && this.#used > 0) this.#blocks.push(this.#tail.subarray(0, this.#used))
    this.#tail = undefined
    this.#used = 0
  }
}
