import type { Writable } from 'node:stream'
import { compact } from '../buffers.ts'

/** Maximum number of pending writes to one visitor. */
const MOST_WAITING = 64

/**
 * Writes the parts of a response to a visitor. The stream bounds the bytes that wait for a slow visitor. But each write is also an
 * object, and keeps the buffer it was read with: a client that sends single bytes would make the edge keep a thousand times as much.
 */
export class Writes {
  readonly #stream: Writable
  readonly #drained: () => void
  #waiting = 0

  /** `drained` is called when the visitor has read enough, also at the stream's own `drain`. */
  constructor(stream: Writable, drained: () => void) {
    this.#stream = stream
    this.#drained = drained
  }

  /** Writes a chunk. Returns false when the visitor must read first. */
  write(chunk: Buffer): boolean {
    if (this.#stream.writableLength === 0) {
      this.#waiting = 0
      return this.#stream.write(chunk)
    }
    this.#waiting += 1
    if (this.#waiting < MOST_WAITING) return this.#stream.write(compact(chunk))
    this.#stream.write(compact(chunk), () => this.#drained())
    return false
  }
}
