import type { ProxyLimits } from '../limits.ts'

/** Counter of sent bytes. */
interface Outlet {
  readonly bytesWritten: number
  readonly writableLength: number
}

/** Checks that the bodies of one request make progress, one period of `slowMs` at a time. */
export class Progress {
  readonly #outlet: Outlet
  readonly #limits: ProxyLimits
  #inAt = 0
  #inBytes = 0
  #wasHeld = false
  #outAt: number
  #outBytes = 0

  constructor(outlet: Outlet, limits: ProxyLimits, now: number) {
    this.#outlet = outlet
    this.#limits = limits
    this.#outAt = now
  }

  restart(now: number): void {
    this.#inAt = now
    this.#inBytes = 0
    this.#wasHeld = false
  }

  /** Records that the visitor was prevented from sending: the current period is not judged. */
  held(): void {
    this.#wasHeld = true
  }

  /** Whether a period has passed in which too few bytes of the body arrived. `bytes`: total so far. */
  isSenderStuck(now: number, bytes: number): boolean {
    const { slowMs, slowBytes } = this.#limits
    if (now - this.#inAt < slowMs) return false
    const stuck = !this.#wasHeld && bytes - this.#inBytes < slowBytes
    this.#inAt = now
    this.#inBytes = bytes
    this.#wasHeld = false
    return stuck
  }

  /** Whether bytes wait for the visitor and, for a period, it accepted too few. */
  isReaderStuck(now: number): boolean {
    const { slowMs, slowBytes } = this.#limits
    const taken = this.#outlet.bytesWritten - this.#outlet.writableLength
    if (this.#outlet.writableLength === 0 || taken - this.#outBytes >= slowBytes) {
      this.#outAt = now
      this.#outBytes = taken
    }
    return now - this.#outAt >= slowMs
  }
}
