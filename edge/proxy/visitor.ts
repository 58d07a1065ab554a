import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { Peer } from '../balancers/proxy-header.ts'
import type { EdgeResponse } from './errors.ts'
import type { Reply } from './head/response-head.ts'
import { compact } from '../memory.ts'
import type { ProxyLimits } from './limits.ts'

/** Facts about a connection that are known when it is accepted. */
export interface Accepted {
  readonly socket: Socket
  /** TCP connection below TLS; without TLS the socket itself. */
  readonly tcp: Socket
  readonly peer: Peer
  readonly scheme: 'http' | 'https'
  /** Server name of the TLS handshake, in lower case. Null: not known, because a TLS 1.2 session was resumed. */
  readonly serverName: string | undefined | null
  /** Whether the connection exceeds a limit: its requests are answered with an error. */
  readonly surplus: boolean
}

/** The visitor's side of one exchange: an HTTP/1.x connection or an HTTP/2 stream. */
export interface Visitor {
  /** Whether chunked bodies are forwarded with their framing; otherwise only the payload is. */
  readonly wire: boolean
  /** Payload bytes of the request's body so far. */
  readonly bytesIn: number
  /** Sends the edge's own response, complete. No part of another response was sent before. */
  answer(answer: EdgeResponse): void
  /** Sends an interim response (1xx). */
  interim(reply: Reply): void
  /**
   * Sends the head of the response, with the first part of its body if available. `early`: the request has not ended yet. Returns false
   * when the caller must wait until drained.
   */
  respond(reply: Reply, first: Buffer | undefined, early: boolean): boolean
  /** Sends the response to an upgrade (RFC 9110, section 15.2.2); bytes are forwarded as they are from then on. */
  upgrade(reply: Reply, first: Buffer | undefined): boolean
  /** Sends more of the body. Returns false when the caller must wait until drained. */
  body(chunk: Buffer): boolean
  /** Ends the response. `trailers`: lines with their CRLF, used when the framing is not forwarded. */
  end(trailers: string): void
  /** Ends the backend's side after an upgrade. */
  endBytes(): void
  /** Aborts an incomplete response, visibly to the visitor. */
  cut(): void
  /** Stops the request's body until `resume`. */
  hold(): void
  resume(): void
}

/** Maximum number of pending writes to one visitor. */
const MOST_WAITING = 64

/** Writers that have begun a response in this turn of the event loop. */
let begun: Writes[] = []

function sendBegun(): void {
  const going = begun
  begun = []
  for (const writes of going) writes.send()
}

/**
 * Writes the parts of a response to a visitor. The stream bounds the bytes that wait for a slow visitor. But each write is also an
 * object, and keeps the buffer it was read with: a client that sends single bytes would make the edge keep a thousand times as much.
 */
export class Writes {
  readonly #stream: Writable
  readonly #drained: () => void
  #waiting = 0
  #begun: Buffer | undefined

  /** `drained` is called when the visitor has read enough, also at the stream's own `drain`. */
  constructor(stream: Writable, drained: () => void) {
    this.#stream = stream
    this.#drained = drained
  }

  /** Writes a chunk. Returns false when the visitor must read first. */
  write(chunk: Buffer): boolean {
    this.send()
    if (this.#stream.writableLength === 0) {
      this.#waiting = 0
      return this.#stream.write(chunk)
    }
    this.#waiting += 1
    if (this.#waiting < MOST_WAITING) return this.#stream.write(compact(chunk))
    this.#stream.write(compact(chunk), () => this.#drained())
    return false
  }

  /**
   * Writes the beginning of a response. Beginnings of one turn are sent one right after the other: a visitor on the same machine would
   * otherwise read the first and sleep again, and waking it costs more than sending. May return true once where the stream would return
   * false.
   */
  begin(chunk: Buffer): boolean {
    if (this.#begun || this.#stream.writableLength > 0) return this.write(chunk)
    this.#begun = chunk
    if (begun.push(this) === 1) queueMicrotask(sendBegun)
    return true
  }

  /** Sends the beginning of a response. Call before any other operation on the stream. */
  send(): void {
    const chunk = this.#begun
    if (!chunk) return
    this.#begun = undefined
    this.#waiting = 0
    this.#stream.write(chunk)
  }
}

/** Counter of sent bytes. */
interface Outlet {
  readonly bytesWritten: number
  readonly writableLength: number
}

/** Checks that the bodies of one request make progress, one period of `slowMs` at a time. */
export class Progress {
  readonly #outlet: Outlet
  readonly #limits: ProxyLimits
  #inAt = 0
  #inBytes = 0
  #wasHeld = false
  #outAt: number
  #outBytes = 0

  constructor(outlet: Outlet, limits: ProxyLimits, now: number) {
    this.#outlet = outlet
    this.#limits = limits
    this.#outAt = now
  }

  restart(now: number): void {
    this.#inAt = now
    this.#inBytes = 0
    this.#wasHeld = false
  }

  /** Records that the visitor was prevented from sending: the current period is not judged. */
  held(): void {
    this.#wasHeld = true
  }

  /** Whether a period has passed in which too few bytes of the body arrived. `bytes`: total so far. */
  isSenderStuck(now: number, bytes: number): boolean {
    const { slowMs, slowBytes } = this.#limits
    if (now - this.#inAt < slowMs) return false
    const stuck = !this.#wasHeld && bytes - this.#inBytes < slowBytes
    this.#inAt = now
    this.#inBytes = bytes
    this.#wasHeld = false
    return stuck
  }

  /** Whether bytes wait for the visitor and, for a period, it accepted too few. */
  isReaderStuck(now: number): boolean {
    const { slowMs, slowBytes } = this.#limits
    const taken = this.#outlet.bytesWritten - this.#outlet.writableLength
    if (this.#outlet.writableLength === 0 || taken - this.#outBytes >= slowBytes) {
      this.#outAt = now
      this.#outBytes = taken
    }
    return now - this.#outAt >= slowMs
  }
}

/** Tracks a visitor that has ended its side: most such visitors have disconnected, some still read. */
export class HalfClosed {
  readonly #now: () => number
  /** Time of the visitor's end, or of the response's last progress after it. */
  #since = Infinity

  /** `now`: monotonic clock in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  get isEnded(): boolean {
    return this.#since !== Infinity
  }

  end(): void {
    this.#since = this.#now()
  }

  /** Records progress of the response. */
  moved(): void {
    if (this.isEnded) this.#since = this.#now()
  }

  /** Whether the visitor counts as disconnected: the response has made no progress for `patienceMs`. */
  isGone(now: number, patienceMs: number): boolean {
    return now - this.#since >= patienceMs
  }
}

interface LingeringDeps {
  readonly socket: Socket
  readonly now: () => number
  readonly limits: Pick<ProxyLimits, 'lingerMs' | 'lingerIdleMs'>
  /** Closes the connection at once; a visitor that has not got all of its response sees it. */
  readonly abandon: () => void
}

/**
 * End of a connection on which a visitor may still send. Incoming bytes are read and dropped: closing a socket with unread bytes resets
 * it, and the reset destroys a response that the visitor has not read yet, such as one that sends its whole request first. The limit is
 * time, not bytes.
 */
export class Lingering {
  readonly #deps: LingeringDeps
  readonly #deadline: number
  /** Time at which bytes last arrived, or at which all output was sent; Infinity until then. */
  #movedAt = Infinity

  constructor(deps: LingeringDeps) {
    this.#deps = deps
    const { socket, now, limits } = deps
    this.#deadline = now() + limits.lingerMs
    socket.end(() => (this.#movedAt = now()))
    socket.resume()
  }

  drop(): void {
    if (this.#movedAt !== Infinity) this.#movedAt = this.#deps.now()
  }

  tick(now: number): void {
    const isIdle = now - this.#movedAt >= this.#deps.limits.lingerIdleMs
    if (isIdle || now >= this.#deadline) this.#deps.abandon()
  }
}
