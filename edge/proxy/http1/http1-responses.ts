import type { Socket } from 'node:net'
import { pauseReads } from '../../reads.ts'
import type { ProxyContext } from '../context.ts'
import { type EdgeResponse, responseBytes } from '../errors.ts'
import type { Exchange } from '../exchange.ts'
import { responseMessage } from '../head/forward-heads.ts'
import type { RequestHead } from '../head/request-head.ts'
import type { After, Reply } from '../head/response-head.ts'
import { type Body, chunkOf, LAST_CHUNK } from '../upstream/body.ts'
import { type Accepted, HalfClosed, Progress, type Visitor, Writes } from '../visitor.ts'

/**
 * End of a response's body. `framed`: as the backend sent it. `chunks`: the last chunk, which the edge writes, because the backend's body
 * ends with its connection. `close`: that of the connection, for HTTP/1.0.
 */
type BodyEnd = 'framed' | 'chunks' | 'close'

/**
 * Responses on a visitor's HTTP/1.x connection: the operations of an exchange. Requests are read by the class that extends it. Both
 * are one object, because every request passes through both.
 */
export abstract class Http1Responses implements Visitor {
  wire = true
  protected readonly context: ProxyContext
  protected readonly accepted: Accepted
  protected readonly socket: Socket
  protected readonly progress: Progress
  protected readonly half: HalfClosed
  protected readonly writes: Writes
  protected phase: 'idle' | 'head' | 'busy' | 'raw' | 'linger' = 'idle'
  /** Request that is being served, and its body. */
  protected request: RequestHead | undefined
  protected incoming: Body | undefined
  protected exchange: Exchange | undefined
  /** Bytes after the request that is being served. */
  protected waiting: Buffer | undefined
  /** Whether the connection closes after the response. */
  protected closes = false
  #bodyEnd: BodyEnd = 'framed'

  constructor(context: ProxyContext, accepted: Accepted) {
    const { socket } = accepted
    this.context = context
    this.accepted = accepted
    this.socket = socket
    this.writes = new Writes(socket, () => this.drained())
    this.half = new HalfClosed(context.now)
    this.progress = new Progress(socket, context.limits, context.now())
  }

  /** Continues after a response: with the next request, or the end of the connection. */
  protected abstract next(): void

  /** Continues after the visitor has read enough. */
  protected abstract drained(): void

  get bytesIn(): number {
    return this.incoming?.payload ?? 0
  }

  answer(answer: EdgeResponse): void {
    this.closes = !this.#survivesAnswer
    this.out.write(responseBytes(answer, this.request?.method ?? 'GET', this.context.date(), this.closes))
    this.next()
  }

  interim(reply: Reply): void {
    if (this.request?.minor !== 1) return
    const { date } = this.context
    this.out.write(responseMessage(reply, { after: 'keep', chunked: false, date, first: undefined }))
  }

  respond(reply: Reply, first: Buffer | undefined, early: boolean): boolean {
    const isOpen = reply.kind === 'chunked' || reply.kind === 'close'
    this.#bodyEnd = this.#endOf(reply)
    const after = this.#after(early)
    this.closes = after === 'close'
    this.half.moved()
    const { date } = this.context
    const part = first && this.#bodyEnd === 'chunks' ? chunkOf(first) : first
    return this.writes.begin(responseMessage(reply, { after, chunked: isOpen && this.wire, date, first: part }))
  }

  upgrade(reply: Reply, first: Buffer | undefined): boolean {
    this.phase = 'raw'
    this.#bodyEnd = 'framed'
    const { date } = this.context
    const go = this.writes.write(responseMessage(reply, { after: 'upgrade', chunked: false, date, first }))
    const waiting = this.waiting
    this.waiting = undefined
    this.socket.resume()
    if (waiting) this.exchange?.writeBytes(waiting)
    if (this.half.isEnded) this.exchange?.endBytes()
    return go
  }

  body(chunk: Buffer): boolean {
    this.half.moved()
    return chunk.length === 0 || this.writes.write(this.#bodyEnd === 'chunks' ? chunkOf(chunk) : chunk)
  }

  end(): void {
    if (this.#bodyEnd === 'chunks') this.writes.write(LAST_CHUNK)
    this.next()
  }

  endBytes(): void {
    this.out.end()
  }

  cut(): void {
    // A visitor would request the missing part of a cut response again.
    const socket = this.out
    if (this.phase === 'raw') socket.end(() => socket.destroy())
    else this.reset()
  }

  /**
   * Ends the connection within a response, so that the visitor sees that it is incomplete (RFC 9112, section 8). A response that ends with
   * the connection needs a TCP reset: many visitors take the end of TLS without its closing message for an end.
   */
  protected reset(): void {
    const { scheme, tcp } = this.accepted
    // A socket that is sending its end cannot be reset: it would never be closed.
    const isEnding = this.socket.writableEnded && this.socket.writableLength === 0
    if (isEnding || (scheme === 'https' && this.#bodyEnd !== 'close')) this.socket.destroy()
    else tcp.resetAndDestroy()
  }

  /** Closes the connection at once. A visitor that has not got all of a response sees it. */
  protected abandon(): void {
    const isIncomplete = this.phase === 'busy' && this.exchange?.began === true
    if (isIncomplete || this.out.writableLength > 0) this.reset()
    else this.socket.destroy()
  }

  hold(): void {
    this.progress.held()
    pauseReads(this.socket)
  }

  resume(): void {
    this.socket.resume()
  }

  /** Whether another request can follow a response of the edge: this request was complete, and was HTTP/1.1. */
  get #survivesAnswer(): boolean {
    return !this.closes && this.incoming?.done === true && this.request?.keepAlive === true && this.request.minor === 1
  }

  #endOf({ kind }: Reply): BodyEnd {
    if (kind !== 'chunked' && kind !== 'close') return 'framed'
    if (!this.wire) return 'close'
    return kind === 'close' ? 'chunks' : 'framed'
  }

  #after(early: boolean): After {
    const request = this.request
    const keeps = request?.keepAlive === true && !early && !this.closes && !this.context.draining
    if (!keeps || this.#bodyEnd === 'close') return 'close'
    return request.minor === 0 ? 'keep-1.0' : 'keep'
  }

  /**
   * Whether the visitor has announced its last request (RFC 9112, section 9.6) and no bytes of it are unread: the socket can be closed at
   * once, because only unread bytes would reset it and destroy the response. TLS needs its closing messages first.
   */
  protected get isLastRequest(): boolean {
    const announced = this.closes && this.request?.keepAlive === false && this.incoming?.done === true
    return announced && !this.waiting && this.accepted.scheme === 'http'
  }

  /** The socket, for operations after the beginning of a response. */
  protected get out(): Socket {
    this.writes.send()
    return this.socket
  }
}
