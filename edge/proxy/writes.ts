import type { Writable } from 'node:stream'
import { compact } from '../compact.ts'

/** Writes that may wait for a visitor at a time. */
const MOST_WAITING = 64

/** Those that have begun a response in this turn of the event loop. */
let begun: Writes[] = []

function sendBegun(): void {
  const going = begun
  begun = []
  for (const writes of going) writes.send()
}

/**
 * The parts of a response on their way to a visitor. The stream bounds the bytes that wait for one who does not read; but each write is an object as well,
 * and holds on to what it was read with: a client that sends single bytes would have the edge keep a thousand times as much.
 */
export class Writes {
  readonly #stream: Writable
  readonly #drained: () => void
  #waiting = 0
  #begun: Buffer | undefined

  /** `drained` is called when a visitor who was to read first has done so, as well as by the stream's own `drain`. */
  constructor(stream: Writable, drained: () => void) {
    this.#stream = stream
    this.#drained = drained
  }

  /** False: the visitor is to read first. */
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
   * The same of the beginning of a response. Those of one turn are sent one right after the other: in between, a visitor on the same machine would read the
   * first and fall asleep again, and to wake him costs more than to send. It may say true once where the stream would say false.
   */
  begin(chunk: Buffer): boolean {
    if (this.#begun || this.#stream.writableLength > 0) return this.write(chunk)
    this.#begun = chunk
    if (begun.push(this) === 1) queueMicrotask(sendBegun)
    return true
  }

  /** Sends what has begun. Whatever else is to be done to the stream comes after it. */
  send(): void {
    const chunk = this.#begun
    if (!chunk) return
    this.#begun = undefined
    this.#waiting = 0
    this.#stream.write(chunk)
  }
}
