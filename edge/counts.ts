/** Current number of items per key, such as requests of a tunnel or connections of a source. */
export class Counts {
  readonly #counts = new Map<string, number>()

  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  enter(key: string): void {
    this.#counts.set(key, this.of(key) + 1)
  }

  leave(key: string): void {
    const left = this.of(key) - 1
    if (left > 0) this.#counts.set(key, left)
    else this.#counts.delete(key)
  }
}
