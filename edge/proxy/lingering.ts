import type { Socket } from 'node:net'

/** Bytes that are read and dropped. */
const MAX_DROPPED = 1_048_576

interface Deps {
  readonly socket: Socket
  readonly now: () => number
  /** How long it goes on, in milliseconds, once all that was written has left. */
  readonly lingerMs: number
}

/**
 * The end of a connection on which a visitor may still be sending: a socket that is closed with unread bytes is reset, and the reset may overtake the answer.
 */
export class Lingering {
  readonly #deps: Deps
  #dropped = 0
  #deadline = Infinity

  constructor(deps: Deps) {
    this.#deps = deps
    const { socket, now, lingerMs } = deps
    socket.end(() => (this.#deadline = now() + lingerMs))
    socket.resume()
  }

  drop(chunk: Buffer): void {
    this.#dropped += chunk.length
    if (this.#dropped > MAX_DROPPED) this.#deps.socket.destroy()
  }

  tick(now: number): void {
    if (now >= this.#deadline) this.#deps.socket.destroy()
  }
}
