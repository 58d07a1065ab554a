import { Buffer } from 'node:buffer'
import { Body, GatheredPayload } from './body.ts'
import { type Reply, bodyKindOf, type ResponseHead } from '../head/response-head.ts'
import type { HeadReader } from '../http1/head-reader.ts'
import type { Modifications } from '../head/forward-fields.ts'
import type { RequestHead } from '../head/request-head.ts'
import { keptTrailers } from '../head/trailers.ts'
import type { Visitor } from '../visitor.ts'

/** Owner of the upstream connection that the response comes from. */
export interface RelayOwner {
  /** Whether the whole request has been sent. */
  readonly sent: boolean
  /** The visitor accepts no more for now. */
  responseHeld(): void
  /** The response is invalid, and no part of it was sent to the visitor. */
  responseInvalid(): void
  /** The response became invalid after its beginning was sent to the visitor. */
  responseBroken(): void
  /** The response is complete; the owner must end it for the visitor. `keeps`: the connection can take another request. */
  responseEnded(keeps: boolean): void
}

interface Deps {
  readonly visitor: Visitor
  readonly owner: RelayOwner
  readonly request: RequestHead
  /** Protocol of the visitor. */
  readonly protocol: 'http/1.1' | 'h2'
  /** Host of the tunnel. */
  readonly host: string
  readonly modifications: Modifications
}

/** Maximum number of interim responses: each is kept until the visitor accepts it, and the backend may send any number. */
const MAX_INTERIM = 64

/**
 * Status of a response that should have no body (RFC 9110, section 15.3.6). Over HTTP/1.1 it is forwarded as the backend sent it; over
 * HTTP/2 Node ends its stream with the head.
 */
const RESET_CONTENT = 205

/** Reads one response and forwards it to the visitor: a new head, and the body as it arrives. */
export class Relay {
  /** Status of the final response, once it has begun. */
  status = 0
  #stage: 'head' | 'body' | 'raw' | 'over' = 'head'
  readonly #deps: Deps
  #heads: HeadReader<ResponseHead | undefined> | undefined
  #head: ResponseHead | undefined
  #body: Body | undefined
  #interim = 0
  #keeps = false
  #rawOut = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Sets the reader of the upstream connection that the response comes from. */
  from(heads: HeadReader<ResponseHead | undefined>): void {
    this.#heads = heads
  }

  /** Whether no byte of the response has arrived. */
  get isUntouched(): boolean {
    return this.#stage === 'head' && this.#heads?.isEmpty !== false
  }

  get began(): boolean {
    return this.status !== 0
  }

  get isRaw(): boolean {
    return this.#stage === 'raw'
  }

  /** Payload bytes that were forwarded. */
  get bytesOut(): number {
    return (this.#body?.payload ?? 0) + this.#rawOut
  }

  /** The trailer section, after the end, without fields that are not forwarded. */
  get trailers(): string {
    const lines = this.#body?.trailers ?? ''
    return lines === '' || !this.#head ? '' : keptTrailers(lines, this.#head.framing, this.#deps.modifications)
  }

  data(chunk: Buffer): void {
    if (this.#stage === 'body') this.#bodyData(chunk)
    else if (this.#stage === 'raw') this.#rawData(chunk)
    else if (this.#stage === 'head') this.#headData(chunk)
  }

  /** Handles the end of the target's side: the end of bodies without a length, an error in others. */
  ended(): void {
    if (this.#body?.kind !== 'close') return this.#broken()
    this.#stage = 'over'
    this.#deps.owner.responseEnded(false)
  }

  #headData(chunk: Buffer): void {
    const heads = this.#heads
    let state = heads?.push(chunk)
    while (heads && state === 'whole') {
      const { head } = heads
      const rest = heads.takeRest()
      if (!head) return this.#invalid()
      if (head.status === 101) return this.#upgrade(head, rest)
      if (head.status >= 200) return this.#respond(head, rest)
      if (++this.#interim > MAX_INTERIM) return this.#invalid()
      this.#deps.visitor.interim(this.#reply(head, 'none'))
      state = rest.length > 0 ? heads.push(rest) : 'more'
    }
    if (state !== 'more') this.#invalid()
  }

  #reply(head: ResponseHead, kind: Reply['kind']): Reply {
    const { host, modifications } = this.#deps
    return { head, kind, host, modifications }
  }

  #respond(head: ResponseHead, rest: Buffer): void {
    const { visitor, owner, request, protocol } = this.#deps
    const kind = bodyKindOf(head, request.method)
    const body = new Body(kind, head.framing.length)
    this.#head = head
    this.#keeps = head.keepAlive && kind !== 'close'
    if (head.status === RESET_CONTENT && protocol === 'h2') return this.#reset(head, body, rest)
    const end = visitor.wire ? body.take(rest, 0) : 0
    if (end < 0) return this.#invalid()
    this.#stage = 'body'
    this.status = head.status
    this.#body = body
    const first = this.#forwardable(body, rest, end)
    const go = visitor.respond(this.#reply(head, kind), first.length > 0 ? first : undefined, !owner.sent)
    if (visitor.wire) this.#moved(go, rest.length - end)
    else this.#unwrap(body, rest, go)
  }

  #bodyData(chunk: Buffer): void {
    const { visitor } = this.#deps
    const body = this.#body
    if (!body) return
    if (!visitor.wire) return this.#unwrap(body, chunk, true)
    const end = body.take(chunk, 0)
    if (end < 0) this.#broken()
    else this.#moved(visitor.body(this.#forwardable(body, chunk, end)), chunk.length - end)
  }

  /**
   * Returns the part of a buffer that is forwarded, with its framing; the body in it extends to `end`. A trailer section waits until it
   * is complete, and is forwarded without some of its fields.
   */
  #forwardable({ chunks }: Body, chunk: Buffer, end: number): Buffer {
    if (!chunks || chunks.trailersAt < 0) return end === chunk.length ? chunk : chunk.subarray(0, end)
    const before = chunk.subarray(0, chunks.trailersAt)
    return chunks.done ? Buffer.concat([before, Buffer.from(`${this.trailers}\r\n`, 'latin1')]) : before
  }

  /** Sends the head without the body. The connection is reusable when the whole body has arrived already. */
  #reset(head: ResponseHead, body: Body, rest: Buffer): void {
    const { visitor, owner } = this.#deps
    const end = body.take(rest, 0)
    if (end < 0) return this.#invalid()
    this.#stage = 'over'
    this.status = head.status
    visitor.respond(this.#reply(head, 'none'), undefined, !owner.sent)
    owner.responseEnded(this.#keeps && body.done && end === rest.length)
  }

  /** Forwards the payload without the framing of a chunked body. */
  #unwrap(body: Body, chunk: Buffer, go: boolean): void {
    const payload = new GatheredPayload()
    const end = body.take(chunk, 0, payload)
    const part = payload.of(chunk)
    const goes = part.length === 0 || this.#deps.visitor.body(part)
    if (end < 0) this.#broken()
    else this.#moved(goes && go, chunk.length - end)
  }

  /** Continues after a part of the body; `surplus` bytes follow its end. */
  #moved(go: boolean, surplus: number): void {
    if (this.#stage !== 'body') return
    if (!this.#body?.done) {
      if (!go) this.#deps.owner.responseHeld()
      return
    }
    this.#stage = 'over'
    this.#deps.owner.responseEnded(this.#keeps && surplus === 0)
  }

  #upgrade(head: ResponseHead, rest: Buffer): void {
    const { visitor, owner, request } = this.#deps
    if (request.upgrade === undefined) return this.#invalid()
    this.#stage = 'raw'
    this.status = 101
    this.#rawOut = rest.length
    if (!visitor.upgrade(this.#reply(head, 'none'), rest.length > 0 ? rest : undefined)) owner.responseHeld()
  }

  #rawData(chunk: Buffer): void {
    this.#rawOut += chunk.length
    if (!this.#deps.visitor.body(chunk)) this.#deps.owner.responseHeld()
  }

  #invalid(): void {
    this.#stage = 'over'
    this.#deps.owner.responseInvalid()
  }

  #broken(): void {
    this.#stage = 'over'
    this.#deps.owner.responseBroken()
  }
}
