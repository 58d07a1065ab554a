import { Buffer } from 'node:buffer'
import { compact } from '../compact.ts'

/** Chunks of this size are kept as they are. */
const BLOCK_BYTES = 16 * 1024
const FIRST_BLOCK_BYTES = 512

/** Bytes that wait, in their order: in memory of about their size, however small the chunks are that they come in. */
export class KeptBytes {
  #blocks: Buffer[] = []
  /** The last block, while it has room. */
  #tail: Buffer | undefined
  #used = 0
  #bytes = 0

  /** How many there are. */
  get length(): number {
    return this.#bytes
  }

  /** Takes the chunk over. */
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

  /** Takes the first of them out; undefined when there are none. */
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

  /** A last block with room for so many bytes: it grows up to its full size, and then another begins. */
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
