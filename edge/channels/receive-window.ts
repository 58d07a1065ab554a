export const FIRST_WINDOW_BYTES = 256 * 1024
export const MAX_WINDOW_BYTES = 16 * 1024 * 1024
const MIN_WINDOW_BYTES = 32 * 1024
/** What may be under way on the line of a client that is near, of all channels that draw from it: what comes for a small answer waits behind it. */
const NEAR_LINE_BYTES = 512 * 1024
/** Smaller windows cost more than the others wait. */
const MIN_SHARE_BYTES = 64 * 1024
/** Closer clients fill the first window's worth of line anyway; a longer queue would only delay the others. */
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

/** The first window of one more channel: smaller when there are many, so that all that are full together stay bounded. */
export function firstWindow(channels: number, allBytes: number): number {
  return Math.max(MIN_WINDOW_BYTES, Math.min(FIRST_WINDOW_BYTES, Math.floor(allBytes / (channels + 1))))
}

/**
 * How much a client may still send on a channel (RFC 4254, section 5.2). A window is given back when half of it has been read, and
 * doubles while the line holds more than half of it under way, from 256 KiB up to 16 MiB; a slow reader takes it back to its first size.
 * Where the client is near, the channels that draw at the same time share 512 KiB.
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

  /** What it has of the budget. */
  get #grown(): number {
    return Math.max(0, this.#size - this.#first)
  }

  get size(): number {
    return this.#size
  }

  /** False: more came than was allowed. */
  arrived(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }

  read(bytes: number): void {
    this.#read += bytes
  }

  /** Whether there is something to grant: the time need not be looked at before. */
  get isDue(): boolean {
    return this.#read >= this.#size / 2
  }

  /** Bytes to allow the client now; 0 while it has enough. `roundTripMs`: of its connection, from which so many channels are `drawing`. */
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

  /** Gives back what was read, and by so much more or less. */
  #resize(now: number, bytes: number): number {
    const given = this.#read + bytes
    this.#size += bytes
    this.#read = 0
    this.#since = now
    this.#left += given
    return given
  }

  /** The reader does not keep up: what it reads next is not given back until the window has its first size. */
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
