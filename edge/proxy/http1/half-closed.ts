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
