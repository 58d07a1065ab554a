import type { Writable } from 'node:stream'
import { compact } from '../compact.ts'

/** Writes that may wait for a visitor at a time. */
const MOST_WAITING = 64

/**
 * The parts of a response on their way to a visitor. The stream bounds the bytes that wait for one who does not read; but each write is an object as well,
 * and holds on to what it was read with: a client that sends single bytes would have the edge keep a thousand times as much.
 */
export class Writes {
  readonly #stream: Writable
  readonly #drained: () => void
  #waiting = 0

  /** `drained` is called when a visitor who was to read first has done so, as well as by the stream's own `drain`. */
  constructor(stream: Writable, drained: () => void) {
    this.#stream = stream
    this.#drained = drained
  }

  /** False: the visitor is to read first. */
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
