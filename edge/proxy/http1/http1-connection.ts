import { Buffer } from 'node:buffer'
import type { Rejection } from '../../../shared/tunnel-decisions.ts'
import { lasting, pauseReads, readAll } from '../../reads.ts'
import { type Accepted, Lingering } from '../visitor.ts'
import { requestBody } from '../upstream/body.ts'
import { Http1Responses } from './http1-responses.ts'
import type { ProxyContext, Watched } from '../context.ts'
import { BAD_BODY, BAD_LINE, STOPPING, tooLarge, TOO_SLOW } from '../errors.ts'
import { HeadReader } from './head-reader.ts'
import { type Glimpse, glimpseOf, rejectMalformed, serve } from '../serve.ts'
import { isRejection, readRequestHead, type RequestHead } from '../head/request-head.ts'

/**
 * Age from which a silent connection is probed, and interval of probes, in milliseconds. Most connections end before, and need no system
 * call for it.
 */
const PROBE_MS = 60_000

/**
 * A visitor's HTTP/1.x connection: each request is answered before the next is read.
 *
 *     idle → head → busy → idle …      busy → raw (101)      any → linger → closed
 */
export class Http1Connection extends Http1Responses implements Watched {
  readonly #heads = new HeadReader<RequestHead | Rejection>(readRequestHead, BAD_LINE)
  #deadline: number
  #advancing = false
  #lingering: Lingering | undefined
  #probesAt: number

  constructor(context: ProxyContext, accepted: Accepted) {
    super(context, accepted)
    const { socket } = accepted
    const now = context.now()
    this.#deadline = now + context.limits.headMs
    this.#probesAt = now + PROBE_MS
    context.connections.add(this)
    context.metrics.connected(accepted.scheme)
    readAll(socket, (chunk) => this.#data(chunk))
    socket.on('drain', () => this.drained())
    socket.on('end', () => this.#ended())
    // The cause of an error does not matter: 'close' follows.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#closed())
  }

  tick(now: number): void {
    if (this.#lingering) this.#lingering.tick(now)
    else if (this.phase === 'busy') this.#tickBusy(now)
    else if (this.phase === 'raw') this.#tickEnded(now, this.context.limits.slowMs)
    else if (now >= this.#deadline) this.#overdue()
    if (this.progress.isReaderStuck(now)) this.abandon()
    if (now >= this.#probesAt) this.#probe()
  }

  /** Enables TCP keepalive, which detects that a silent visitor has disconnected. */
  #probe(): void {
    this.#probesAt = Infinity
    this.socket.setKeepAlive(true, PROBE_MS)
  }

  recheck(hostnames: ReadonlySet<string>): void {
    if (this.exchange?.revoke(hostnames)) this.reset()
  }

  drain(): void {
    this.closes = true
    // A request that waits for the visitor to read is still answered, as the last one.
    if (this.phase === 'idle' && !this.waiting) this.out.end()
  }

  destroy(): void {
    this.closes = true
    const isAnswered = this.exchange?.stop(STOPPING)
    if (isAnswered === undefined) this.abandon()
    // After a response the connection lingers until its socket is cut.
    else if (!isAnswered) this.cut()
  }

  #data(chunk: Buffer): void {
    if (this.#lingering) this.#lingering.drop()
    else if (this.#takesHeads && !this.waiting && !this.#advancing) this.#advance(chunk)
    else this.#pass(lasting(chunk))
  }

  /** Handles bytes that are not the beginning of a request that can be served at once. */
  #pass(chunk: Buffer): void {
    if (this.phase === 'raw') this.exchange?.writeBytes(chunk)
    else if (this.phase === 'busy' && this.incoming?.done === false) this.#bodyData(chunk)
    else {
      this.#keep(chunk)
      this.#advance()
    }
  }

  #keep(chunk: Buffer): void {
    this.waiting = this.waiting ? Buffer.concat([this.waiting, chunk]) : chunk
  }

  /**
   * Serves received and waiting requests one after the other, except while responses wait for the visitor to read. `come` must be given
   * only when nothing waits and this method is not running: it would be lost.
   */
  #advance(come?: Buffer): void {
    if (this.#advancing) return
    this.#advancing = true
    if (come) this.#headData(come)
    while (this.waiting && this.#takesHeads) {
      const chunk = this.waiting
      this.waiting = undefined
      this.#headData(chunk)
    }
    this.#advancing = false
    if (this.waiting) pauseReads(this.socket)
    else if (this.#isReady && this.socket.isPaused()) this.socket.resume()
  }

  get #isReady(): boolean {
    return this.phase === 'idle' || this.phase === 'head'
  }

  get #takesHeads(): boolean {
    return this.#isReady && !this.socket.writableNeedDrain
  }

  #headData(chunk: Buffer): void {
    const state = this.#heads.push(chunk)
    if (state === 'more') return this.#awaitHead()
    const { head, text } = this.#heads
    if (state === 'bad') return this.#refuse(BAD_LINE)
    if (state === 'large') return this.#refuse(tooLarge(text), glimpseOf(text))
    if (isRejection(head)) this.#refuse(head, glimpseOf(text))
    else this.#begin(head, lasting(this.#heads.takeRest()))
  }

  /** Starts the deadline for the rest of a head. */
  #awaitHead(): void {
    if (this.half.isEnded) this.out.end()
    if (this.phase === 'head') return
    this.phase = 'head'
    this.#deadline = this.context.now() + this.context.limits.headMs
  }

  #begin(head: RequestHead, rest: Buffer): void {
    const body = requestBody(head.framing.length, head.framing.chunked)
    const end = body.done ? 0 : body.take(rest, 0)
    if (end < 0) return this.#refuse(BAD_BODY, head)
    const first = end > 0 ? rest.subarray(0, end) : undefined
    this.waiting = end < rest.length ? rest.subarray(end) : undefined
    this.request = head
    this.incoming = body
    this.phase = 'busy'
    this.wire = head.minor === 1
    const began = this.context.now()
    this.progress.restart(began)
    this.half.moved()
    // Paused until the exchange has an upstream connection.
    if (!body.done) pauseReads(this.socket)
    const { scheme, serverName, surplus, peer } = this.accepted
    const exchange = serve(this.context, this, {
      head,
      at: this.context.date(),
      began,
      scheme,
      serverName,
      peer: peer.address,
      peerPort: peer.port,
      protocol: 'http/1.1',
      surplus,
      first,
      ended: body.done,
      trailers: body.trailers,
    })
    this.exchange = exchange?.isOver === false ? exchange : undefined
  }

  #bodyData(chunk: Buffer): void {
    const body = this.incoming
    if (!body) return
    const end = body.take(chunk, 0)
    if (end < 0) return this.#badBody(BAD_BODY)
    if (end < chunk.length) {
      this.#keep(chunk.subarray(end))
      pauseReads(this.socket)
    }
    if (body.done && this.exchange?.takesTrailers(body.trailers) === false) return this.#badBody(BAD_BODY)
    this.exchange?.write(end === chunk.length ? chunk : chunk.subarray(0, end), body.done ? 'ended' : 'more')
  }

  #badBody(rejection: Rejection): void {
    if (this.exchange?.stop(rejection) !== true) this.abandon()
  }

  /** Responds to a malformed request and closes: the start of the next request is unknown. */
  #refuse(rejection: Rejection, glimpse?: Glimpse): void {
    this.request = this.incoming = undefined
    rejectMalformed(this.context, this, { rejection, glimpse, accepted: this.accepted, protocol: 'http/1.1' })
  }

  protected next(): void {
    this.exchange = undefined
    if (this.isLastRequest && this.out.writableLength === 0) return void this.socket.destroy()
    if (this.closes || (this.half.isEnded && !this.waiting)) {
      const { now, limits } = this.context
      this.phase = 'linger'
      this.waiting = undefined
      this.#lingering = new Lingering({ socket: this.out, now, limits, abandon: () => this.abandon() })
      return
    }
    this.phase = 'idle'
    this.#deadline = this.context.now() + this.context.limits.keepAliveMs
    this.#advance()
  }

  protected drained(): void {
    if (this.exchange) this.exchange.visitorDrained()
    else if (this.#isReady) this.#advance()
  }

  #ended(): void {
    this.half.end()
    if (this.phase === 'raw') this.exchange?.endBytes()
    else if (this.phase === 'busy' && this.incoming?.done === false) this.out.destroy()
    else if (this.#isReady && !this.waiting) this.out.end()
  }

  #tickBusy(now: number): void {
    this.exchange?.tick(now)
    this.#tickEnded(now, this.context.limits.halfClosedMs)
    if (this.exchange?.began === true) return
    if (this.incoming?.done === false && this.progress.isSenderStuck(now, this.incoming.payload)) this.#badBody(TOO_SLOW)
  }

  #tickEnded(now: number, patienceMs: number): void {
    if (this.half.isGone(now, patienceMs)) this.abandon()
  }

  #overdue(): void {
    if (this.phase === 'head') this.#refuse(TOO_SLOW)
    else this.socket.destroy()
  }

  #closed(): void {
    this.context.connections.delete(this)
    this.context.metrics.disconnected(this.accepted.scheme)
    this.exchange?.visitorGone()
  }
}
