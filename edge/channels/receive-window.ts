export const FIRST_WINDOW_BYTES = 256 * 1024
export const MAX_WINDOW_BYTES = 16 * 1024 * 1024
const MIN_WINDOW_BYTES = 32 * 1024
/**
 * Maximum bytes in flight from a nearby client, over all channels that receive at the same time: a small response waits behind them.
 */
const NEAR_LINE_BYTES = 512 * 1024
/** Minimum share of a channel. Smaller windows cost more than they save the other channels in waiting. */
const MIN_SHARE_BYTES = 64 * 1024
/**
 * Round-trip time up to which a client counts as near: the first window fills its line, and a longer queue would only delay other
 * channels.
 */
const FAR_MS = 5

/** Memory that windows may grow into, shared by many channels. */
export class Budget {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  give(bytes: number): void {
    this.#left += bytes
  }
}

/** Returns the first window of one more channel: smaller when there are many, so that the sum of full windows stays bounded. */
export function firstWindow(channels: number, allBytes: number): number {
  return Math.max(MIN_WINDOW_BYTES, Math.min(FIRST_WINDOW_BYTES, Math.floor(allBytes / (channels + 1))))
}

/**
 * Number of bytes that a client may still send on a channel (RFC 4254, section 5.2). The window is granted again when half of it has
 * been read. It doubles while more than half of it is in flight, from 256 KiB up to 16 MiB; a slow reader shrinks it to its first size.
 * Channels of a nearby client that receive at the same time share 512 KiB.
 */
export class ReceiveWindow {
  readonly #first: number
  readonly #budget: Budget
  #size: number
  #left: number
  #read = 0
  #since: number

  constructor(first: number, budget: Budget, now: number) {
    this.#first = first
    this.#budget = budget
    this.#size = first
    this.#left = first
    this.#since = now
  }

  /** Bytes taken from the budget. */
  get #grown(): number {
    return Math.max(0, this.#size - this.#first)
  }

  get size(): number {
    return this.#size
  }

  /** Returns false when the client sent more than its window. */
  arrived(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }

  read(bytes: number): void {
    this.#read += bytes
  }

  /** Whether there is window to grant. The caller reads the clock only then. */
  get isDue(): boolean {
    return this.#read >= this.#size / 2
  }

  /**
   * Returns the window to grant the client now, in bytes; 0 while it has enough. `roundTripMs` is that of the connection; `drawing` is
   * the number of its channels that receive now.
   */
  grant(now: number, roundTripMs: number, drawing: number): number {
    if (!this.isDue) return 0
    if (roundTripMs <= FAR_MS && this.#size <= this.#first) return this.#share(now, drawing)
    const onTheWay = (this.#read / Math.max(now - this.#since, 0.1)) * roundTripMs
    const growth = Math.min(this.#size, MAX_WINDOW_BYTES - this.#size)
    const grows = roundTripMs > FAR_MS && onTheWay > this.#size / 2 && growth > 0 && this.#budget.take(growth)
    return this.#resize(now, grows ? growth : 0)
  }

  #share(now: number, drawing: number): number {
    const share = Math.max(MIN_SHARE_BYTES, Math.floor(NEAR_LINE_BYTES / drawing))
    return this.#resize(now, Math.max(Math.min(share, this.#first) - this.#size, -this.#read))
  }

  /** Grants what was read, plus or minus `bytes`. */
  #resize(now: number, bytes: number): number {
    const given = this.#read + bytes
    this.#size += bytes
    this.#read = 0
    this.#since = now
    this.#left += given
    return given
  }

  /** Shrinks the window of a slow reader: bytes that it reads are not granted again until the window has its first size. */
  shrink(): void {
    const back = Math.min(this.#grown, this.#read)
    this.#size -= back
    this.#read -= back
    this.#budget.give(back)
  }

  release(): void {
    this.#budget.give(this.#grown)
    this.#size = Math.min(this.#size, this.#first)
  }
}

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
