import type { Socket } from 'node:net'
import type { ProxyLimits } from '../limits.ts'

interface Deps {
  readonly socket: Socket
  readonly now: () => number
  readonly limits: Pick<ProxyLimits, 'lingerMs' | 'lingerIdleMs'>
}

/**
 * The end of a connection on which a visitor may still be sending. What comes is read and dropped: a socket that is closed with unread bytes is reset, and the
 * reset destroys an answer that the visitor has not read yet, as one that writes its whole request first has not. Time is the bound, not bytes.
 */
export class Lingering {
  readonly #deps: Deps
  readonly #deadline: number
  /** When bytes last came, or all that was written had left: Infinity until then. */
  #movedAt = Infinity

  constructor(deps: Deps) {
    this.#deps = deps
    const { socket, now, limits } = deps
    this.#deadline = now() + limits.lingerMs
    socket.end(() => (this.#movedAt = now()))
    socket.resume()
  }

  drop(): void {
    if (this.#movedAt !== Infinity) this.#movedAt = this.#deps.now()
  }

  tick(now: number): void {
    const isIdle = now - this.#movedAt >= this.#deps.limits.lingerIdleMs
    if (isIdle || now >= this.#deadline) this.#deps.socket.destroy()
  }
}
