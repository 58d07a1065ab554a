import { isIP } from 'node:net'

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

/**
 * Groups of an IPv6 network of /64, which one household or host usually has (RFC 6177). Counting single addresses would limit nothing.
 */
const IPV6_GROUPS = 4

/** Returns the key that a source is counted under: an IPv4 address, or the /64 network of an IPv6 address. */
export function sourceKey(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length
  return [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0')].slice(0, IPV6_GROUPS).join(':')
}
