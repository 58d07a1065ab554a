import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type Accepted, HalfClosed } from '../visitor.ts'
import type { ProxyContext, Watched } from '../context.ts'
import { MAX_HEAD } from '../head/fields.ts'
import { readStreamHead } from './http2-request.ts'
import { Http2Stream } from './http2-stream.ts'
import { STOPPING } from '../errors.ts'
import { glimpseOfStream, rejectMalformed, serve } from '../serve.ts'
import { isRejection } from '../head/request-head.ts'

/** Period in which resets of streams are counted. */
const RESET_WINDOW_MS = 10_000
/** Receive window of one stream, in bytes; SESSION_WINDOW is that of a whole connection. */
const WINDOW = 262_144
/**
 * Maximum size of a header block that is read (RFC 9113, section 6.5.2: plus 32 bytes for each field), so that a larger one gets the
 * same response as over HTTP/1.1. It is as much as nghttp2 accepts: a block of nine frames of 16 KiB, and strings of 64 KiB, both
 * compressed. nghttp2 ends the connection above that.
 */
const READ_HEAD = 256 * 1024
const FIELD_OVERHEAD = 32
const SESSION_WINDOW = 1_048_576
/** Time without progress after which pending bytes are dropped when the visitor has ended its side. */
const UNTAKEN_MS = 2_000

/** Server for connections whose TLS handshake selected HTTP/2. */
export interface Http2 {
  accept(accepted: Accepted): void
}

export function createHttp2(context: ProxyContext): Http2 {
  const { limits } = context
  let accepting: Accepted | undefined
  const server = createServer({
    // MB. Node ends a session that holds more: queued frames, header blocks, waiting data.
    maxSessionMemory: 8,
    // The size is the only limit.
    maxHeaderListPairs: READ_HEAD / FIELD_OVERHEAD,
    maxSendHeaderBlockLength: 2 * MAX_HEAD,
    // A backend may repeat a field that should occur once, as over HTTP/1.1: that must not throw.
    strictSingleValueFields: false,
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    settings: {
      maxConcurrentStreams: limits.streams,
      initialWindowSize: WINDOW,
      maxHeaderListSize: READ_HEAD,
      enablePush: false,
    },
  })
  server.on('session', (session) => {
    if (accepting) new Http2Connection(context, accepting, session)
  })
  server.on('sessionError', () => undefined)

  return {
    accept(accepted) {
      // The session is created, and its event emitted, within this call.
      accepting = accepted
      server.emit('connection', accepted.socket)
      accepting = undefined
    },
  }
}

/** A visitor's HTTP/2 connection. Each of its requests is decided on its own (RFC 9113, section 9.1.1). */
class Http2Connection implements Watched {
  readonly #context: ProxyContext
  readonly #accepted: Accepted
  readonly #session: ServerHttp2Session
  readonly #streams = new Set<Http2Stream>()
  readonly #half: HalfClosed
  #idleAt: number
  /** Maximum idle time; the first request is due as soon as over HTTP/1.1. */
  #idleMs: number
  #resets = 0
  #resetsAt = 0
  /**
   * After the visitor ended its side: bytes that it had accepted at the last check, and the time at which it last accepted all that
   * there was.
   */
  #taken: number | undefined
  #tookAt = 0

  constructor(context: ProxyContext, accepted: Accepted, session: ServerHttp2Session) {
    this.#context = context
    this.#accepted = accepted
    this.#session = session
    this.#half = new HalfClosed(context.now)
    this.#idleAt = context.now()
    this.#idleMs = context.limits.headMs
    context.connections.add(this)
    context.metrics.connected('h2')
    session.on('stream', (stream, _headers, _flags, raw: unknown) => this.#stream(stream, raw))
    session.setLocalWindowSize(SESSION_WINDOW)
    session.on('error', () => session.destroy())
    accepted.socket.once('end', () => this.#ended())
    session.on('close', () => {
      // The visitor's side of the socket may still be open: HTTP/2 cannot use one side alone.
      accepted.socket.destroy()
      context.connections.delete(this)
      context.metrics.disconnected('h2')
    })
  }

  tick(now: number): void {
    for (const stream of this.#streams) stream.tick(now)
    if (this.#half.isEnded) this.#tickEnded(now)
    if (this.#streams.size > 0 || now - this.#idleAt < this.#idleMs) return
    // The visitor had time to answer the GOAWAY.
    if (this.#session.closed) this.#cut()
    else this.#session.close()
  }

  recheck(hostnames: ReadonlySet<string>): void {
    for (const stream of this.#streams) stream.recheck(hostnames)
  }

  drain(): void {
    this.#session.close()
  }

  destroy(): void {
    for (const stream of this.#streams) stream.stop(STOPPING, constants.NGHTTP2_INTERNAL_ERROR)
    this.#session.close()
  }

  #cut(): void {
    this.#session.destroy()
    // A session that was closed before waits for the visitor to read the rest and to close as well.
    this.#accepted.socket.destroy()
  }

  /** Handles the end of the visitor's side: its requests are answered, and no more can arrive. */
  #ended(): void {
    this.#half.end()
    if (this.#streams.size > 0) this.#session.close()
    else this.#session.destroy()
  }

  /** Ends the connection of a visitor that has ended its side and probably disconnected: Node does not report the failed write. */
  #tickEnded(now: number): void {
    let taken = 0
    let waits = false
    for (const { bytesWritten, writableLength } of this.#streams) {
      taken += bytesWritten - writableLength
      waits ||= writableLength > 0
    }
    if (taken !== this.#taken) this.#half.moved()
    if (taken !== this.#taken || !waits) this.#tookAt = now
    this.#taken = taken
    if (now - this.#tookAt >= UNTAKEN_MS || this.#half.isGone(now, this.#context.limits.halfClosedMs)) this.#cut()
  }

  #stream(stream: ServerHttp2Stream, raw: unknown): void {
    const head = readStreamHead({ raw: raw as readonly string[], endsHere: stream.endAfterHeaders })
    const visitor = new Http2Stream(this.#context, stream, isRejection(head) ? undefined : head)
    this.#streams.add(visitor)
    this.#idleMs = this.#context.limits.keepAliveMs
    stream.on('close', () => this.#closed(visitor, stream.rstCode))
    if (isRejection(head)) {
      const glimpse = glimpseOfStream(raw as readonly string[])
      return rejectMalformed(this.#context, visitor, { rejection: head, glimpse, accepted: this.#accepted, protocol: 'h2' })
    }
    const { scheme, serverName, surplus, peer } = this.#accepted
    const from = { peer: peer.address, peerPort: peer.port, protocol: 'h2' as const }
    const exchange = serve(this.#context, visitor, {
      head,
      at: this.#context.date(),
      began: this.#context.now(),
      scheme,
      serverName,
      surplus,
      ...from,
      first: undefined,
      ended: stream.endAfterHeaders,
      trailers: '',
    })
    visitor.exchange = exchange?.isOver === false ? exchange : undefined
  }

  #closed(visitor: Http2Stream, code: number | undefined): void {
    this.#streams.delete(visitor)
    const now = this.#context.now()
    if (this.#streams.size === 0) this.#idleAt = now
    visitor.exchange?.visitorGone()
    visitor.exchange = undefined
    if (code !== undefined && code !== constants.NGHTTP2_NO_ERROR && !visitor.isCut) this.#countReset(now)
  }

  /** Counts resets: a visitor that opens streams only to reset them wastes the edge's resources (CVE-2023-44487). */
  #countReset(now: number): void {
    if (now - this.#resetsAt >= RESET_WINDOW_MS) {
      this.#resetsAt = now
      this.#resets = 0
    }
    if (++this.#resets > this.#context.limits.resets) this.#session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
}
