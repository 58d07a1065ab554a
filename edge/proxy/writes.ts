import type { Writable } from 'node:stream'
import { compact } from '../buffers.ts'

/** Maximum number of pending writes to one visitor. */
const MOST_WAITING = 64

/** Writers that have begun a response in this turn of the event loop. */
let begun: Writes[] = []

function sendBegun(): void {
  const going = begun
  begun = []
  for (const writes of going) writes.send()
}

/**
 * Writes the parts of a response to a visitor. The stream bounds the bytes that wait for a slow visitor. But each write is also an
 * object, and keeps the buffer it was read with: a client that sends single bytes would make the edge keep a thousand times as much.
 */
export class Writes {
  readonly #stream: Writable
  readonly #drained: () => void
  #waiting = 0
  #begun: Buffer | undefined

  /** `drained` is called when the visitor has read enough, also at the stream's own `drain`. */
  constructor(stream: Writable, drained: () => void) {
    this.#stream = stream
    this.#drained = drained
  }

  /** Writes a chunk. Returns false when the visitor must read first. */
  write(chunk: Buffer): boolean {
    this.send()
    if (this.#stream.writableLength === 0) {
      this.#waiting = 0
      return this.#stream.write(chunk)
    }
    this.#waiting += 1
    if (this.#waiting < MOST_WAITING) return this.#stream.write(compact(chunk))
    this.#stream.write(compact(chunk), () => this.#drained())
    return false
  }

  /**
   * Writes the beginning of a response. Beginnings of one turn are sent one right after the other: a visitor on the same machine would
   * otherwise read the first and sleep again, and waking it costs more than sending. May return true once where the stream would return
   * false.
   */
  begin(chunk: Buffer): boolean {
    if (this.#begun || this.#stream.writableLength > 0) return this.write(chunk)
    this.#begun = chunk
    if (begun.push(this) === 1) queueMicrotask(sendBegun)
    return true
  }

  /** Sends the beginning of a response. Call before any other operation on the stream. */
  send(): void {
    const chunk = this.#begun
    if (!chunk) return
    this.#begun = undefined
    this.#waiting = 0
    this.#stream.write(chunk)
  }
}
