interface Waiting<T> {
  readonly item: T
  readonly due: number
}

/** What waits for its time, in the order in which it came. Times are of one clock, in milliseconds. */
export class Backlog<T> {
  #waiting: Waiting<T>[] = []

  get size(): number {
    return this.#waiting.length
  }

  /** Nothing that is added may be due sooner than what is there. */
  add(item: T, due: number): void {
    this.#waiting.push({ item, due })
  }

  /** Forgets the oldest, until `most` are left. @returns how many went */
  trim(most: number): number {
    return this.#waiting.splice(0, Math.max(0, this.#waiting.length - most)).length
  }

  /** Takes out what is due, the oldest first. */
  take(now: number, most: number): readonly T[] {
    const isLater = this.#waiting.findIndex(({ due }) => due > now)
    const count = Math.min(isLater < 0 ? this.#waiting.length : isLater, most)
    return this.#waiting.splice(0, count).map(({ item }) => item)
  }

  /** Puts back what was taken, before all else; nothing is due before `due` now. */
  putBack(items: readonly T[], due: number): void {
    this.#waiting = [...items, ...this.#waiting.map(({ item }) => item)].map((item) => ({ item, due }))
  }
}
