import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Carrier } from './channel.ts'
import type { ReceiveWindow } from './receive-window.ts'
import { compact } from '../memory.ts'

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

/** Size from which chunks are kept without a copy. */
const BLOCK_BYTES = 16 * 1024
const FIRST_BLOCK_BYTES = 512

/** Queue of bytes in memory of about their size, however small their chunks are. */
export class KeptBytes {
  #blocks: Buffer[] = []
  /** Last block, while it has room. */
  #tail: Buffer | undefined
  #used = 0
  #bytes = 0

  /** Number of queued bytes. */
  get length(): number {
    return this.#bytes
  }

  /** Adds a chunk and takes over its memory. */
  add(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#bytes += chunk.length
    if (chunk.length >= BLOCK_BYTES) {
      this.#seal()
      this.#blocks.push(compact(chunk))
      return
    }
    const tail = this.#tailFor(chunk.length)
    tail.set(chunk, this.#used)
    this.#used += chunk.length
  }

  /** Removes and returns the first block; undefined when the queue is empty. */
  take(): Buffer | undefined {
    if (this.#blocks.length === 0) this.#seal()
    const block = this.#blocks.shift()
    this.#bytes -= block?.length ?? 0
    return block
  }

  clear(): void {
    this.#blocks = []
    this.#tail = undefined
    this.#used = 0
    this.#bytes = 0
  }

  /** Returns a last block with room for this many bytes. It grows to its full size, then another begins. */
  #tailFor(bytes: number): Buffer {
    const needed = this.#used + bytes
    if (this.#tail && needed <= this.#tail.length) return this.#tail
    if (needed > BLOCK_BYTES) {
      this.#seal()
      return this.#tailFor(bytes)
    }
    const grown = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, 2 * needed)))
    if (this.#tail) grown.set(this.#tail.subarray(0, this.#used))
    this.#tail = grown
    return grown
  }

  #seal(): void {
    if (this.#tail && this.#used > 0) this.#blocks.push(this.#tail.subarray(0, this.#used))
    this.#tail = undefined
    this.#used = 0
  }
}
