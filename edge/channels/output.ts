import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { madeGarbage } from '../memory.ts'

/** Size up to which copying into one buffer costs less than passing many buffers to the kernel. */
const COPY_BYTES = 64 * 1024
/** Pending bytes above which channels stop sending to a client. */
const CONGESTED_BYTES = 512 * 1024
/** Maximum pending bytes for an authenticated client or edge. Channels stop far below it, so these are protocol replies. */
const ABANDONED_BYTES = 8 * 1024 * 1024
/** Maximum pending bytes before login; the handshake needs a small part of it. */
export const BEFORE_LOGIN_BYTES = 256 * 1024

const dirty: Output[] = []
let scheduled = false

function flushAll(): void {
  scheduled = false
  // Emptied first: output that is written during the flush belongs to the next turn.
  for (const output of dirty.splice(0)) output.flush()
}

function together(pending: readonly Buffer[], bytes: number): Buffer {
  madeGarbage(bytes)
  return Buffer.concat(pending, bytes)
}

/** Output to one client. All bytes that are written in one turn of the event loop are sent together. */
export class Output {
  readonly #socket: Socket
  #pending: Buffer[] = []
  #bytes = 0
  #total = 0
  #maxPending: number

  /** @param maxPending maximum pending bytes; a client that does not read and exceeds it is disconnected */
  constructor(socket: Socket, maxPending = ABANDONED_BYTES) {
    this.#socket = socket
    this.#maxPending = maxPending
  }

  write(data: Buffer): void {
    if (this.#pending.length === 0) {
      dirty.push(this)
      if (!scheduled) {
        scheduled = true
        setImmediate(flushAll)
      }
    }
    this.#pending.push(data)
    this.#bytes += data.length
    this.#total += data.length
    if (this.waiting > this.#maxPending) this.#socket.destroy()
  }

  /** Raises the limit after the client has logged in. */
  trust(): void {
    this.#maxPending = ABANDONED_BYTES
  }

  flush(): void {
    const pending = this.#pending
    const bytes = this.#bytes
    this.#pending = []
    this.#bytes = 0
    if (pending.length === 0 || !this.#socket.writable) return
    if (bytes <= COPY_BYTES) this.#socket.write(pending.length === 1 && pending[0] ? pending[0] : together(pending, bytes))
    else {
      this.#socket.cork()
      for (const data of pending) this.#socket.write(data)
      this.#socket.uncork()
    }
  }

  /** Bytes that the kernel has not accepted yet. */
  get waiting(): number {
    return this.#bytes + this.#socket.writableLength
  }

  get congested(): boolean {
    return this.waiting > CONGESTED_BYTES
  }

  /** Bytes written since the beginning. */
  get total(): number {
    return this.#total
  }
}
