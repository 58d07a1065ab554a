const MINUTE_MS = 60_000
/** Maximum number of keys, so that many sources cannot fill the memory; the oldest are dropped. */
const MAX_KEYS = 50_000

interface Window {
  readonly since: number
  readonly count: number
}

/** Counter per key in windows of a minute. */
export class MinuteCounter {
  readonly #limit: number
  readonly #now: () => number
  readonly #windows = new Map<string, Window>()

  /** @param now monotonic clock in milliseconds: a reached limit ends after a minute, whatever the machine's clock is set to */
  constructor(limit: number, now: () => number) {
    this.#limit = limit
    this.#now = now
  }

  add(key: string): void {
    const current = this.#current(key)
    this.#windows.delete(key)
    this.#windows.set(key, { since: current?.since ?? this.#now(), count: (current?.count ?? 0) + 1 })
    const [oldest] = this.#windows.keys()
    if (this.#windows.size > MAX_KEYS && oldest !== undefined) this.#windows.delete(oldest)
  }

  reached(key: string): boolean {
    return (this.#current(key)?.count ?? 0) >= this.#limit
  }

  #current(key: string): Window | undefined {
    const window = this.#windows.get(key)
    if (window === undefined || this.#now() - window.since < MINUTE_MS) return window
    this.#windows.delete(key)
    return undefined
  }
}
