interface Waiting<T> {
  readonly item: T
  readonly due: number
}

/** FIFO queue of items, each with the time at which it is due. Times are milliseconds of one clock. */
export class Backlog<T> {
  #waiting: Waiting<T>[] = []

  get size(): number {
    return this.#waiting.length
  }

  /** Appends an item, which must not be due before the last item of the queue. */
  add(item: T, due: number): void {
    this.#waiting.push({ item, due })
  }

  /** Drops the oldest items until at most `most` are left. @returns number of dropped items */
  trim(most: number): number {
    return this.#waiting.splice(0, Math.max(0, this.#waiting.length - most)).length
  }

  /** Removes and returns at most `most` items that are due at `now`, oldest first. */
  take(now: number, most: number): readonly T[] {
    const isLater = this.#waiting.findIndex(({ due }) => due > now)
    const count = Math.min(isLater < 0 ? this.#waiting.length : isLater, most)
    return this.#waiting.splice(0, count).map(({ item }) => item)
  }

  /** Puts `items` back at the front. All items of the queue are then due at `due`. */
  putBack(items: readonly T[], due: number): void {
    this.#waiting = [...items, ...this.#waiting.map(({ item }) => item)].map((item) => ({ item, due }))
  }
}
