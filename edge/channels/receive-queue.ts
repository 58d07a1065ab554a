import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Carrier } from './channel.ts'
import { KeptBytes } from './kept-bytes.ts'
import type { ReceiveWindow } from './receive-window.ts'

/** Consumer of a queue. */
interface Reader {
  /** Handles bytes now. */
  data(chunk: Buffer): void
  /** Adds (or, when negative, subtracts) queued bytes. */
  held(bytes: number): void
}

/** Bytes from a client on one channel, queued while their reader pauses. */
export class ReceiveQueue {
  readonly #reader: Reader
  readonly #window: ReceiveWindow
  readonly #unread = new KeptBytes()
  #paused = false
  #delivering = false

  constructor(window: ReceiveWindow, reader: Reader) {
    this.#window = window
    this.#reader = reader
  }

  get bytes(): number {
    return this.#unread.length
  }

  get empty(): boolean {
    return this.#unread.length === 0
  }

  /** Returns false when the client sent more than its window. */
  arrived(bytes: number): boolean {
    return this.#window.arrived(bytes)
  }

  pause(): void {
    this.#paused = true
  }

  /** Returns false when the queue was not paused. */
  resume(): boolean {
    const was = this.#paused
    this.#paused = false
    return was
  }

  /** Delivers the data now and returns true, or queues it while the reader pauses. */
  take(data: Buffer): boolean {
    if (this.#paused || this.#unread.length > 0) {
      this.#unread.add(data)
      this.#reader.held(data.length)
      return false
    }
    this.#delivering = true
    this.#reader.data(data)
    this.#delivering = false
    this.#window.read(data.length)
    if (this.#unread.length > 0) this.deliver()
    return true
  }

  /** Delivers queued data until the reader pauses again. */
  deliver(): void {
    if (this.#delivering) return
    this.#delivering = true
    while (this.#unread.length > 0 && !this.#paused) {
      const data = this.#unread.take() ?? Buffer.alloc(0)
      this.#reader.held(-data.length)
      this.#window.read(data.length)
      this.#reader.data(data)
    }
    this.#delivering = false
  }

  /** Whether the reader is slower than the client. */
  get stalled(): boolean {
    return this.#paused || this.#unread.length > 0
  }

  /** Returns the window to grant the client now, in bytes; 0 while it has enough. */
  grant({ roundTripMs, share }: Pick<Carrier, 'roundTripMs' | 'share'>): number {
    if (!this.#window.isDue) return 0
    const now = performance.now()
    return this.#window.grant(now, roundTripMs, share.drawing(this, now))
  }

  shrink(): void {
    this.#window.shrink()
  }

  /** Drops queued data that will not be read. */
  release(): void {
    const { length } = this.#unread
    this.#unread.clear()
    this.#reader.held(-length)
    this.#window.release()
  }
}
