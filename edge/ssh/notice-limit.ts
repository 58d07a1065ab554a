const MINUTE_MS = 60_000
/** Maximum lines per connection in a minute. */
const LINES_A_MINUTE = 10
/** Time in which an identical line is shown once. */
const REPEAT_MS = 10_000

/** Rate limit of the lines that a client's terminal shows while it serves: at most 10 a minute, and an identical line once in 10 s. */
export class NoticeLimit {
  /** Lines of the last minute, oldest first: at most {@link LINES_A_MINUTE}. */
  #shown: { readonly line: string; readonly at: number }[] = []

  /** Whether the line may be shown now; counts it if so. `now`: milliseconds of a monotonic clock. */
  take(line: string, now: number): boolean {
    this.#shown = this.#shown.filter(({ at }) => now - at < MINUTE_MS)
    if (this.#shown.length >= LINES_A_MINUTE) return false
    if (this.#shown.some((shown) => shown.line === line && now - shown.at < REPEAT_MS)) return false
    this.#shown.push({ line, at: now })
    return true
  }
}
