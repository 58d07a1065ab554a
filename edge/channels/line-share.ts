/** Between two looks at who draws from a line. */
const SPAN_MS = 50

/** How many channels of one line have bytes coming at a time: those that were given room within the last moments. */
export class LineShare {
  #now = new Set<object>()
  #before = 0
  #since = -Infinity

  /** Counts `channel`, which is given room at `now`, and the others that were lately. */
  drawing(channel: object, now: number): number {
    if (now - this.#since >= SPAN_MS) {
      this.#before = now - this.#since < 2 * SPAN_MS ? this.#now.size : 0
      this.#now = new Set()
      this.#since = now
    }
    this.#now.add(channel)
    return Math.max(this.#now.size, this.#before)
  }
}
