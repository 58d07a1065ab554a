/** Length of a counting period. */
const SPAN_MS = 50

/** Number of channels of one connection that receive data at the same time: those that were granted window within the last period. */
export class LineShare {
  #now = new Set<object>()
  #before = 0
  #since = -Infinity

  /** Counts `channel`, which is granted window at `now`. Returns the number of channels counted recently. */
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
