import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { Rejection } from '../../../shared/tunnel-decisions.ts'
import { lasting, pauseReads, readAll } from '../../reads.ts'
import { type Accepted, type Visitor, HalfClosed, Lingering, Progress, Writes } from '../visitor.ts'
import { type Body, requestBody } from '../upstream/body.ts'
import type { ProxyContext, Watched } from '../context.ts'
import { type Answer, answerBytes, BAD_BODY, BAD_LINE, STOPPING, tooLarge, TOO_SLOW } from '../errors.ts'
import type { Exchange } from '../exchange.ts'
import { responseMessage } from '../head/forward-heads.ts'
import type { After, Reply } from '../head/response-head.ts'
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
export class Http1Connection implements Visitor, Watched {
  wire = true
  readonly #context: ProxyContext
  readonly #accepted: Accepted
  readonly #socket: Socket
  readonly #heads = new HeadReader<RequestHead | Rejection>(readRequestHead, BAD_LINE)
  readonly #progress: Progress
  readonly #half: HalfClosed
  readonly #writes: Writes
  #phase: 'idle' | 'head' | 'busy' | 'raw' | 'linger' = 'idle'
  #deadline: number
  #request: RequestHead | undefined
  #body: Body | undefined
  #exchange: Exchange | undefined
  /** Bytes after the request that is being served. */
  #waiting: Buffer | undefined
  #advancing = false
  #close = false
  #lingering: Lingering | undefined
  #probesAt: number

  constructor(context: ProxyContext, accepted: Accepted) {
    const { socket } = accepted
    this.#context = context
    this.#accepted = accepted
    this.#socket = socket
    this.#writes = new Writes(socket, () => this.#drained())
    this.#half = new HalfClosed(context.now)
    this.#progress = new Progress(socket, context.limits, context.now())
    const now = context.now()
    this.#deadline = now + context.limits.headMs
    this.#probesAt = now + PROBE_MS
    context.connections.add(this)
    context.metrics.connected(accepted.scheme)
    readAll(socket, (chunk) => this.#data(chunk))
    socket.on('drain', () => this.#drained())
    socket.on('end', () => this.#ended())
    // The cause of an error does not matter: 'close' follows.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#closed())
  }

  get bytesIn(): number {
    return this.#body?.payload ?? 0
  }

  tick(now: number): void {
    if (this.#lingering) this.#lingering.tick(now)
    else if (this.#phase === 'busy') this.#tickBusy(now)
    else if (this.#phase === 'raw') this.#tickEnded(now, this.#context.limits.slowMs)
    else if (now >= this.#deadline) this.#overdue()
    if (this.#progress.isReaderStuck(now)) this.#socket.destroy()
    if (now >= this.#probesAt) this.#probe()
  }

  /** Enables TCP keepalive, which detects that a silent visitor has disconnected. */
  #probe(): void {
    this.#probesAt = Infinity
    this.#socket.setKeepAlive(true, PROBE_MS)
  }

  recheck(hostnames: ReadonlySet<string>): void {
    if (this.#exchange?.revoke(hostnames)) this.#reset()
  }

  drain(): void {
    this.#close = true
    // A request that waits for the visitor to read is still answered, as the last one.
    if (this.#phase === 'idle' && !this.#waiting) this.#out.end()
  }

  destroy(): void {
    this.#close = true
    const isAnswered = this.#exchange?.stop(STOPPING)
    if (isAnswered === undefined) this.#socket.destroy()
    // After a response the connection lingers until its socket is cut.
    else if (!isAnswered) this.cut()
  }

  answer(answer: Answer): void {
    this.#close = !this.#survivesAnswer
    this.#out.write(answerBytes(answer, this.#request?.method ?? 'GET', this.#context.date(), this.#close))
    this.#next()
  }

  interim(reply: Reply): void {
    if (this.#request?.minor !== 1) return
    const { date } = this.#context
    this.#out.write(responseMessage(reply, { after: 'keep', chunked: false, date, first: undefined }))
  }

  respond(reply: Reply, first: Buffer | undefined, early: boolean): boolean {
    const after = this.#after(reply, early)
    this.#close = after === 'close'
    this.#half.moved()
    const { date } = this.#context
    return this.#writes.begin(responseMessage(reply, { after, chunked: reply.kind === 'chunked' && this.wire, date, first }))
  }

  upgrade(reply: Reply, first: Buffer | undefined): boolean {
    this.#phase = 'raw'
    const { date } = this.#context
    const go = this.#writes.write(responseMessage(reply, { after: 'upgrade', chunked: false, date, first }))
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#socket.resume()
    if (waiting) this.#exchange?.writeBytes(waiting)
    if (this.#half.isEnded) this.#exchange?.endBytes()
    return go
  }

  body(chunk: Buffer): boolean {
    this.#half.moved()
    return chunk.length === 0 || this.#writes.write(chunk)
  }

  end(): void {
    this.#next()
  }

  endBytes(): void {
    this.#out.end()
  }

  cut(): void {
    // A visitor would request the missing part of a cut response again.
    const socket = this.#out
    if (this.#phase === 'raw') socket.end(() => socket.destroy())
    else this.#reset()
  }

  /** Resets the connection, so that the visitor sees that the response is incomplete. */
  #reset(): void {
    if (this.#accepted.scheme === 'http') this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  hold(): void {
    this.#progress.held()
    pauseReads(this.#socket)
  }

  resume(): void {
    this.#socket.resume()
  }

  #data(chunk: Buffer): void {
    if (this.#lingering) this.#lingering.drop()
    else if (this.#takesHeads && !this.#waiting && !this.#advancing) this.#advance(chunk)
    else this.#pass(lasting(chunk))
  }

  /** Handles bytes that are not the beginning of a request that can be served at once. */
  #pass(chunk: Buffer): void {
    if (this.#phase === 'raw') this.#exchange?.writeBytes(chunk)
    else if (this.#phase === 'busy' && this.#body?.done === false) this.#bodyData(chunk)
    else {
      this.#keep(chunk)
      this.#advance()
    }
  }

  #keep(chunk: Buffer): void {
    this.#waiting = this.#waiting ? Buffer.concat([this.#waiting, chunk]) : chunk
  }

  /**
   * Serves received and waiting requests one after the other, except while responses wait for the visitor to read. `come` must be given
   * only when nothing waits and this method is not running: it would be lost.
   */
  #advance(come?: Buffer): void {
    if (this.#advancing) return
    this.#advancing = true
    if (come) this.#headData(come)
    while (this.#waiting && this.#takesHeads) {
      const chunk = this.#waiting
      this.#waiting = undefined
      this.#headData(chunk)
    }
    this.#advancing = false
    if (this.#waiting) pauseReads(this.#socket)
    else if (this.#isReady && this.#socket.isPaused()) this.#socket.resume()
  }

  get #isReady(): boolean {
    return this.#phase === 'idle' || this.#phase === 'head'
  }

  get #takesHeads(): boolean {
    return this.#isReady && !this.#socket.writableNeedDrain
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
    if (this.#half.isEnded) this.#out.end()
    if (this.#phase === 'head') return
    this.#phase = 'head'
    this.#deadline = this.#context.now() + this.#context.limits.headMs
  }

  #begin(head: RequestHead, rest: Buffer): void {
    const body = requestBody(head.framing.length, head.framing.chunked)
    const end = body.done ? 0 : body.take(rest, 0)
    if (end < 0) return this.#refuse(BAD_BODY, head)
    const first = end > 0 ? rest.subarray(0, end) : undefined
    this.#waiting = end < rest.length ? rest.subarray(end) : undefined
    this.#request = head
    this.#body = body
    this.#phase = 'busy'
    this.wire = head.minor === 1
    const began = this.#context.now()
    this.#progress.restart(began)
    this.#half.moved()
    // Paused until the exchange has an upstream connection.
    if (!body.done) pauseReads(this.#socket)
    const { scheme, serverName, surplus, peer } = this.#accepted
    const exchange = serve(this.#context, this, {
      head,
      at: this.#context.date(),
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
    this.#exchange = exchange?.isOver === false ? exchange : undefined
  }

  #bodyData(chunk: Buffer): void {
    const body = this.#body
    if (!body) return
    const end = body.take(chunk, 0)
    if (end < 0) return this.#badBody(BAD_BODY)
    if (end < chunk.length) {
      this.#keep(chunk.subarray(end))
      pauseReads(this.#socket)
    }
    if (body.done && this.#exchange?.takesTrailers(body.trailers) === false) return this.#badBody(BAD_BODY)
    this.#exchange?.write(end === chunk.length ? chunk : chunk.subarray(0, end), body.done ? 'ended' : 'more')
  }

  #badBody(rejection: Rejection): void {
    if (this.#exchange?.stop(rejection) !== true) this.#out.destroy()
  }

  /** Responds to a malformed request and closes: the start of the next request is unknown. */
  #refuse(rejection: Rejection, glimpse?: Glimpse): void {
    this.#request = this.#body = undefined
    rejectMalformed(this.#context, this, { rejection, glimpse, accepted: this.#accepted, protocol: 'http/1.1' })
  }

  /** Whether another request can follow a response of the edge: this request was complete, and was HTTP/1.1. */
  get #survivesAnswer(): boolean {
    return !this.#close && this.#body?.done === true && this.#request?.keepAlive === true && this.#request.minor === 1
  }

  #after({ kind }: Reply, early: boolean): After {
    const request = this.#request
    const keeps = request?.keepAlive === true && !early && kind !== 'close' && !this.#close && !this.#context.draining
    if (!keeps || (kind === 'chunked' && !this.wire)) return 'close'
    return request.minor === 0 ? 'keep-1.0' : 'keep'
  }

  #next(): void {
    this.#exchange = undefined
    if (this.#isLastRequest && this.#out.writableLength === 0) return void this.#socket.destroy()
    if (this.#close || (this.#half.isEnded && !this.#waiting)) {
      const { now, limits } = this.#context
      this.#phase = 'linger'
      this.#waiting = undefined
      this.#lingering = new Lingering({ socket: this.#out, now, limits })
      return
    }
    this.#phase = 'idle'
    this.#deadline = this.#context.now() + this.#context.limits.keepAliveMs
    this.#advance()
  }

  /**
   * Whether the visitor has announced its last request (RFC 9112, section 9.6) and no bytes of it are unread: the socket can be closed at
   * once, because only unread bytes would reset it and destroy the response. TLS needs its closing messages first.
   */
  get #isLastRequest(): boolean {
    const announced = this.#close && this.#request?.keepAlive === false && this.#body?.done === true
    return announced && !this.#waiting && this.#accepted.scheme === 'http'
  }

  /** The socket, for operations after the beginning of a response. */
  get #out(): Socket {
    this.#writes.send()
    return this.#socket
  }

  #drained(): void {
    if (this.#exchange) this.#exchange.visitorDrained()
    else if (this.#isReady) this.#advance()
  }

  #ended(): void {
    this.#half.end()
    if (this.#phase === 'raw') this.#exchange?.endBytes()
    else if (this.#phase === 'busy' && this.#body?.done === false) this.#out.destroy()
    else if (this.#isReady && !this.#waiting) this.#out.end()
  }

  #tickBusy(now: number): void {
    this.#exchange?.tick(now)
    this.#tickEnded(now, this.#context.limits.halfClosedMs)
    if (this.#exchange?.began === true) return
    if (this.#body?.done === false && this.#progress.isSenderStuck(now, this.#body.payload)) this.#badBody(TOO_SLOW)
  }

  #tickEnded(now: number, patienceMs: number): void {
    if (this.#half.isGone(now, patienceMs)) this.#socket.destroy()
  }

  #overdue(): void {
    if (this.#phase === 'head') this.#refuse(TOO_SLOW)
    else this.#socket.destroy()
  }

  #closed(): void {
    this.#context.connections.delete(this)
    this.#context.metrics.disconnected(this.#accepted.scheme)
    this.#exchange?.visitorGone()
  }
}
