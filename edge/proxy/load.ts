/** Counts the requests that each tunnel has under way. */
export class Load {
  readonly #counts = new Map<string, number>()

  of(tunnel: string): number {
    return this.#counts.get(tunnel) ?? 0
  }

  enter(tunnel: string): void {
    this.#counts.set(tunnel, this.of(tunnel) + 1)
  }

  leave(tunnel: string): void {
    const left = this.of(tunnel) - 1
    if (left > 0) this.#counts.set(tunnel, left)
    else this.#counts.delete(tunnel)
  }
}
