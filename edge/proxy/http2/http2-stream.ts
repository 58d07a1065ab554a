import { Buffer } from 'node:buffer'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Rejection } from '../../../shared/tunnel-decisions.ts'
import { madeGarbage } from '../../memory.ts'
import type { ProxyContext } from '../context.ts'
import { type EdgeResponse, httpDate, BAD_BODY, TOO_SLOW } from '../errors.ts'
import type { Exchange } from '../exchange.ts'
import { addedFields, keptFields, wantsDate } from '../head/forward-heads.ts'
import type { Reply } from '../head/response-head.ts'
import { fieldObject, streamFields } from './http2-request.ts'
import { Progress, type Visitor, Writes } from '../visitor.ts'
import type { RequestHead } from '../head/request-head.ts'
import { trailerPairs } from '../head/trailers.ts'
import { chunkOf } from '../upstream/body.ts'

/** Statuses without a body, which get no Content-Length. */
const BODILESS = new Set([204, 205])

/**
 * Request of an HTTP/2 visitor: its body is sent to the backend as an HTTP/1.1 body, and the response's body is taken out of its
 * framing.
 */
export class Http2Stream implements Visitor {
  readonly wire = false
  bytesIn = 0
  exchange: Exchange | undefined
  /** Whether the edge itself has reset the stream. */
  isCut = false
  readonly #context: ProxyContext
  readonly #stream: ServerHttp2Stream
  readonly #head: RequestHead | undefined
  readonly #progress: Progress
  readonly #writes: Writes
  #bytesWritten = 0
  #requestEnded: boolean
  #requestTrailers = ''
  #responseTrailers = ''

  /** `head`: undefined when it was invalid and only needs an error response. */
  constructor(context: ProxyContext, stream: ServerHttp2Stream, head: RequestHead | undefined) {
    this.#context = context
    this.#stream = stream
    this.#writes = new Writes(stream, () => this.exchange?.visitorDrained())
    this.#head = head
    this.#requestEnded = stream.endAfterHeaders
    this.#progress = new Progress(this, context.limits, context.now())
    this.#progress.restart(context.now())
    stream.on('error', () => stream.close())
    stream.on('drain', () => this.exchange?.visitorDrained())
    stream.on('wantTrailers', () => this.#sendTrailers())
    if (!stream.endAfterHeaders && head) this.#readBody()
    else stream.resume()
  }

  /** Bytes of the response's body. */
  get bytesWritten(): number {
    return this.#bytesWritten
  }

  get writableLength(): number {
    return this.#stream.writableLength
  }

  /** Whether the stream was reset or has ended: Node throws when more is sent. */
  get #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed
  }

  tick(now: number): void {
    this.exchange?.tick(now)
    if (this.#progress.isReaderStuck(now)) this.#reset(constants.NGHTTP2_CANCEL)
    else if (!this.#requestEnded && this.exchange?.began !== true && this.#progress.isSenderStuck(now, this.bytesIn))
      this.stop(TOO_SLOW)
  }

  recheck(hostnames: ReadonlySet<string>): void {
    if (this.exchange?.revoke(hostnames)) this.#reset(constants.NGHTTP2_CANCEL)
    if (this.exchange?.isOver) this.exchange = undefined
  }

  /** Rejects the request, or resets the stream with `code` when the response has begun. */
  stop(rejection: Rejection, code: number = constants.NGHTTP2_PROTOCOL_ERROR): void {
    if (this.exchange && !this.exchange.stop(rejection)) this.#reset(code)
    this.exchange = undefined
  }

  answer(answer: EdgeResponse): void {
    const { status, headers, body } = answer
    if (this.#isGone) return
    const length = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const isEmpty = status === 204 || body === '' || this.#head?.method === 'HEAD'
    this.#stream.respond({ ':status': status, ...headers, ...length }, { endStream: isEmpty })
    if (isEmpty) this.#dropRest()
    else this.#stream.end(body, () => this.#dropRest())
  }

  interim(reply: Reply): void {
    if (this.#isGone || this.#stream.headersSent) return
    const fields = { ...fieldObject(this.#fieldsOf(reply)), ':status': reply.head.status }
    this.#send(() => this.#stream.additionalHeaders(fields))
  }

  respond(reply: Reply): boolean {
    const { head, kind } = reply
    if (this.#isGone) return true
    const raw = [':status', String(head.status), ...this.#fieldsOf(reply)]
    if (kind !== 'chunked' && head.framing.length !== undefined && !BODILESS.has(head.status))
      raw.push('content-length', String(head.framing.length))
    if (wantsDate(reply)) raw.push('date', httpDate(this.#context.date()))
    const options = { endStream: kind === 'none', waitForTrailers: kind === 'chunked' || kind === 'close', sendDate: false }
    this.#send(() => this.#stream.respond(raw, options))
    return true
  }

  /** HTTP/2 has no upgrades (RFC 9113, section 8.6). */
  upgrade(): boolean {
    this.cut()
    return false
  }

  body(chunk: Buffer): boolean {
    this.#bytesWritten += chunk.length
    return this.#isGone || this.#writes.write(chunk)
  }

  end(trailers: string): void {
    this.exchange = undefined
    this.#responseTrailers = trailers
    if (this.#isGone) return
    if (this.#stream.writableEnded) this.#dropRest()
    else this.#stream.end(() => this.#dropRest())
  }

  /** Forwarded fields, and fields that the tunnel sets. */
  #fieldsOf(reply: Reply): string[] {
    return streamFields([...keptFields(reply), ...addedFields(reply)])
  }

  #sendTrailers(): void {
    const trailers = fieldObject(streamFields(trailerPairs(this.#responseTrailers)))
    if (!this.#isGone) this.#send(() => this.#stream.sendTrailers(trailers))
  }

  /** Node validates the backend's fields again and throws: then this stream ends, but not the edge. */
  #send(fields: () => void): void {
    try {
      fields()
    } catch (error) {
      this.#context.log.error({ err: error }, 'a response cannot be sent over HTTP/2')
      this.#reset(constants.NGHTTP2_INTERNAL_ERROR)
    }
  }

  /** Drops the rest of the request (RFC 9113, section 8.1). */
  #dropRest(): void {
    this.#stream.resume()
    if (!this.#requestEnded) this.#reset(constants.NGHTTP2_NO_ERROR)
  }

  endBytes(): void {
    this.cut()
  }

  cut(): void {
    this.#reset(constants.NGHTTP2_INTERNAL_ERROR)
  }

  hold(): void {
    this.#progress.held()
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  #reset(code: number): void {
    this.isCut = true
    this.#stream.close(code)
  }

  #readBody(): void {
    const stream = this.#stream
    stream.on('trailers', (_headers, _flags, raw: unknown) => (this.#requestTrailers = linesOf(raw)))
    stream.on('data', (chunk: Buffer) => this.#data(chunk))
    stream.on('end', () => {
      this.#requestEnded = true
      // Node emits 'end' for a stream with nothing left to read even while it is paused: the exchange may have no upstream connection
      // yet.
      if (stream.isPaused()) stream.once('resume', () => this.#ended())
      else this.#ended()
    })
    // Paused until the exchange has an upstream connection.
    stream.pause()
  }

  #data(chunk: Buffer): void {
    madeGarbage(chunk.length)
    this.bytesIn += chunk.length
    const { length } = this.#head?.framing ?? {}
    if (chunk.length === 0) return
    if (length === undefined) this.exchange?.write(chunkOf(chunk), 'more')
    else if (this.bytesIn > length) this.stop(BAD_BODY)
    else this.exchange?.write(chunk, this.bytesIn === length ? 'ended' : 'more')
  }

  #ended(): void {
    const { length } = this.#head?.framing ?? {}
    if (length !== undefined) {
      if (this.bytesIn !== length) this.stop(BAD_BODY)
      return
    }
    if (this.exchange?.takesTrailers(this.#requestTrailers) === false) this.stop(BAD_BODY)
    else this.exchange?.write(Buffer.from(`0\r\n${this.#requestTrailers}\r\n`, 'latin1'), 'ended')
  }
}

/** Returns trailers of a request as lines. They are checked when they are sent. */
function linesOf(raw: unknown): string {
  const fields: unknown[] = Array.isArray(raw) ? raw : []
  let lines = ''
  for (let index = 0; index + 1 < fields.length; index += 2) lines += `${String(fields[index])}: ${String(fields[index + 1])}\r\n`
  return lines
}
