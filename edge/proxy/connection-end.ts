import type { Socket } from 'node:net'
import type { ProxyLimits } from './limits.ts'

/** Tracks a visitor that has ended its side: most such visitors have disconnected, some still read. */
export class HalfClosed {
  readonly #now: () => number
  /** Time of the visitor's end, or of the response's last progress after it. */
  #since = Infinity

  /** `now`: monotonic clock in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  get isEnded(): boolean {
    return this.#since !== Infinity
  }

  end(): void {
    this.#since = this.#now()
  }

  /** Records progress of the response. */
  moved(): void {
    if (this.isEnded) this.#since = this.#now()
  }

  /** Whether the visitor counts as disconnected: the response has made no progress for `patienceMs`. */
  isGone(now: number, patienceMs: number): boolean {
    return now - this.#since >= patienceMs
  }
}

interface Deps {
  readonly socket: Socket
  readonly now: () => number
  readonly limits: Pick<ProxyLimits, 'lingerMs' | 'lingerIdleMs'>
}

/**
 * End of a connection on which a visitor may still send. Incoming bytes are read and dropped: closing a socket with unread bytes resets
 * it, and the reset destroys a response that the visitor has not read yet, such as one that sends its whole request first. The limit is
 * time, not bytes.
 */
export class Lingering {
  readonly #deps: Deps
  readonly #deadline: number
  /** Time at which bytes last arrived, or at which all output was sent; Infinity until then. */
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
