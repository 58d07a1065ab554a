/** Whether a visitor has ended its side: most of those have gone, some still read. */
export class HalfClosed {
  readonly #now: () => number
  /** When it did, or what it asked for last moved on after that. */
  #since = Infinity

  /** `now`: milliseconds since some moment. */
  constructor(now: () => number) {
    this.#now = now
  }

  get isEnded(): boolean {
    return this.#since !== Infinity
  }

  end(): void {
    this.#since = this.#now()
  }

  /** What it asked for has begun, or moved on. */
  moved(): void {
    if (this.isEnded) this.#since = this.#now()
  }

  /** Whether it is to be taken for one who has gone: nothing has moved on for so long. */
  isGone(now: number, patienceMs: number): boolean {
    return now - this.#since >= patienceMs
  }
}
