import type { Accepted } from './accepted.ts'
import type { RequestHead } from './head/request-head.ts'
import { Buffer } from 'node:buffer'
import {
  ACCESS_CHECKS,
  firstRejection,
  type RequestReason,
  type ObservedRequest,
  type Rejection,
  type Upstream,
  UPSTREAM_REJECTIONS,
} from '../../shared/tunnel-decisions.ts'
import type { Route } from '../route.ts'
import type { Session } from '../session.ts'
import type { ProxyContext } from './context.ts'
import { responseFor } from './errors.ts'
import { forwardedRequest } from './head/forward-request.ts'
import type { Visit } from './head/request-head.ts'
import type { UpstreamConnection, UpstreamEnd, UpstreamUser } from './upstream/upstream-connection.ts'
import { lend } from './upstream/pool.ts'
import { Relay, type RelayOwner } from './upstream/relay.ts'
import { isReplayable, leavesReusableConnection } from './upstream/replay.ts'
import { BAD_BODY } from './head/rejections.ts'
import { keptTrailers } from './head/trailers.ts'
import type { Visitor } from './visitor.ts'

/** A request whose head has come. */
export interface Arrival {
  readonly head: RequestHead
  /** When it had come, in milliseconds since the epoch. */
  readonly at: number
  /** The same by the clock that deadlines and durations go by. */
  readonly began: number
  readonly scheme: 'http' | 'https'
  /** As {@link Accepted} has it. */
  readonly serverName: Accepted['serverName']
  /** Plain, as {@link plainAddress} makes it. */
  readonly peer: string
  readonly peerPort: number
  readonly protocol: 'http/1.1' | 'h2'
  /** Whether its connection is one too many. */
  readonly surplus: boolean
  /** What has come of its body, and whether that is all. */
  readonly first: Buffer | undefined
  readonly ended: boolean
  /** Of a body that is all there: lines with their CRLF, latin1. */
  readonly trailers: string
}

/** What is to be exchanged, and for whom. */
export interface ExchangeInput {
  readonly arrival: Arrival
  readonly route: Route
  readonly visit: Visit
  /** What the decision to serve it was made of. */
  readonly observed: ObservedRequest
}

/** What the journal says of a visitor who went before an answer. */
const GONE = 499

/**
 * One request and its response: from the visitor to a link and back. First it waits for a session, then it has asked; whatever ends it is written down once.
 */
export class Exchange implements UpstreamUser, RelayOwner {
  /** Whether the request has been sent whole. */
  sent: boolean
  readonly #context: ProxyContext
  readonly #visitor: Visitor
  readonly #asked: ExchangeInput
  readonly #relay: Relay
  #state: 'waiting' | 'asked' | 'over' = 'waiting'
  #connection: UpstreamConnection | undefined
  /** That the link is of. */
  #session: Session | undefined
  /** Sessions that refused a channel for this request. */
  #tried: Set<Session> | undefined
  /** Head and what came with it. */
  #message: Buffer | undefined
  /** Whether more than the message has been written. */
  #streamed = false
  #use = { reused: false, fresh: false, paused: false }
  /** Once asked: when a part of the request was last sent. */
  #sentAt = 0
  #abort: AbortController | undefined
  #rawIn = 0
  #answered = 0

  constructor(context: ProxyContext, visitor: Visitor, asked: ExchangeInput) {
    const { arrival, route } = asked
    this.#context = context
    this.#visitor = visitor
    this.#asked = asked
    this.sent = arrival.ended
    const modifications = context.modificationsOf(route.config).response
    const { head: request, protocol } = arrival
    this.#relay = new Relay({ visitor, owner: this, request, protocol, host: route.host, modifications })
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  /** Whether the visitor has got the beginning of the response: then it need not send the rest of its request (RFC 9110, section 10.1.1). */
  get began(): boolean {
    return this.#relay.began
  }

  start(): void {
    const { route, arrival } = this.#asked
    this.#context.load.enter(route.hostname)
    if (this.takesTrailers(arrival.trailers)) this.#connect(arrival.began)
    else this.stop(BAD_BODY)
  }

  /**
   * Whether the backend may be sent the end of a body that has these trailers: lines with their CRLF. A response is passed on without those that are not to
   * be; of a request some lines may have gone on already, so that it is refused, by HTTP/1.1 or HTTP/2, as with any other trailer that is forbidden.
   */
  takesTrailers(lines: string): boolean {
    const { arrival, route } = this.#asked
    return (
      lines === '' || keptTrailers(lines, arrival.head.framing, this.#context.modificationsOf(route.config).request) === lines
    )
  }

  /** More of the request's body, as the backend is to see it; `ended`: that was all. */
  write(chunk: Buffer, progress: 'more' | 'ended'): void {
    if (!this.#connection) {
      // The rest of an answered request is not wanted. While one waits, its visitor is held: should more come, it must not be missing without a word.
      if (this.#state === 'waiting') this.#fail('offline')
      return
    }
    this.#streamed = true
    this.sent = progress === 'ended'
    this.#sentAt = this.#context.now()
    if (!this.#connection.channel.write(chunk)) this.#visitor.hold()
  }

  /** After an upgrade: bytes of the visitor. */
  writeBytes(chunk: Buffer): void {
    this.#rawIn += chunk.length
    if (this.#connection && !this.#connection.channel.write(chunk)) this.#visitor.hold()
  }

  /** After an upgrade: the visitor has ended its side. */
  endBytes(): void {
    this.#connection?.channel.end()
  }

  visitorDrained(): void {
    if (!this.#use.paused) return
    this.#use.paused = false
    this.#connection?.channel.resume()
  }

  /** The visitor has gone, or must. */
  visitorGone(reason: RequestReason = 'visitor_gone'): void {
    if (this.#state === 'over') return
    this.#close()
    // An upgrade is over when either side goes.
    const isOrderly = this.#relay.isRaw && reason === 'visitor_gone'
    if (this.#relay.began) this.#over(this.#relay.status, isOrderly ? null : reason)
    else this.#over(GONE, reason)
  }

  /** The rest of the request cannot be understood, or does not come. False: the response has begun, and is left to the visitor to cut. */
  stop(rejection: Rejection): boolean {
    if (this.#state === 'over') return false
    const answerable = !this.#relay.began
    if (answerable) this.#answer(rejection)
    else this.visitorGone(rejection.reason)
    return answerable
  }

  /**
   * Ends the request if its tunnel is one of `hostnames` and does not allow it any more. True: the response has begun, and the visitor must be cut off.
   */
  revoke(hostnames: ReadonlySet<string>): boolean {
    const { route, observed } = this.#asked
    if (this.#state === 'over' || !hostnames.has(route.hostname)) return false
    const current = this.#context.routes.get(route.hostname)
    const rejection = firstRejection(ACCESS_CHECKS, { ...observed, tunnel: current?.id === route.id ? current : undefined })
    return rejection !== undefined && !this.stop(rejection)
  }

  tick(now: number): void {
    if (this.#state !== 'asked' || this.#relay.began) return
    if (now - this.#sentAt >= this.#context.limits.upstreamMs) this.#fail('timeout')
  }

  upstreamDrained(): void {
    if (this.#relay.isRaw || !this.sent) this.#visitor.resume()
  }

  upstreamData(chunk: Buffer): void {
    this.#relay.data(chunk)
  }

  upstreamEnded(): void {
    if (this.#relay.isRaw) this.#visitor.endBytes()
    else if (this.#relay.began) this.#relay.ended()
    else this.#unanswered()
  }

  upstreamClosed(end: UpstreamEnd): void {
    this.#connection = undefined
    if (this.#relay.isRaw) {
      this.#over(this.#relay.status, null)
      this.#visitor.cut()
    } else if (this.#relay.began) this.responseBroken()
    else if (end === 'session_lost') this.#sessionLost()
    else if (end === 'ended' || end === 'lost') this.#unanswered()
    else this.#refused()
  }

  responseHeld(): void {
    this.#use.paused = true
    this.#connection?.channel.pause()
  }

  responseInvalid(): void {
    this.#fail('invalid')
  }

  responseBroken(): void {
    this.#close()
    this.#over(this.#relay.status, 'upstream_reset')
    this.#visitor.cut()
  }

  responseEnded(keeps: boolean): void {
    const connection = this.#connection
    this.#connection = undefined
    if (connection && keeps && this.sent && leavesReusableConnection(this.#asked.arrival.head)) {
      if (this.#use.paused) connection.channel.resume()
      this.#context.pools.give(connection)
    } else connection?.discard()
    this.#over(this.#relay.status, null)
    this.#visitor.end(this.#relay.trailers)
  }

  get #replayable(): boolean {
    return this.sent && isReplayable(this.#asked.arrival.head)
  }

  /** One that is about to be asked to go, as its edge does, counts as gone. */
  get #isSessionThere(): boolean {
    return this.#context.sessions.of(this.#asked.route.hostname).some(({ id }) => id === this.#session?.id)
  }

  /** `at`: now. */
  #connect(at = this.#context.now()): void {
    const session = this.#context.sessions.pick(this.#asked.route.hostname, this.#tried)
    if (session) this.#attach(session, at)
    else if (this.#tried) this.#failRefused()
    else this.#hold()
  }

  #hold(): void {
    const { sessions, limits, now, log } = this.#context
    const left = this.#asked.arrival.began + limits.holdMs - now()
    this.#state = 'waiting'
    if (!this.sent) this.#visitor.hold()
    if (left <= 0) return this.#fail('offline')
    this.#abort = new AbortController()
    const arrived = (session: Session | undefined) => {
      if (this.#state !== 'waiting') return
      if (session) this.#attach(session, now())
      else this.#fail('offline')
    }
    sessions.waitFor(this.#asked.route.hostname, left, this.#abort.signal).then(arrived, (error: unknown) => {
      log.error({ err: error }, 'waiting for a session failed')
      arrived(undefined)
    })
  }

  #attach(session: Session, at: number): void {
    const { pools } = this.#context
    const { arrival, route } = this.#asked
    const use = this.#use.fresh ? 'fresh' : this.#replayable ? 'replayable' : 'once'
    const origin = { address: arrival.peer, port: arrival.peerPort }
    const connection = pools.take(session, { origin, use, target: route.config.target })
    lend(connection, this)
    this.#connection = connection
    this.#session = session
    this.#relay.from(connection.heads)
    this.#use.reused = connection.uses > 1
    this.#state = 'asked'
    this.#sentAt = at
    this.#message ??= this.#compose()
    const open = connection.channel.write(this.#message)
    if (open && !this.sent) this.#visitor.resume()
  }

  #compose(): Buffer {
    const { arrival, route, visit } = this.#asked
    return forwardedRequest(arrival.head, visit, this.#context.modificationsOf(route.config).request, arrival.first)
  }

  /** Nobody had been reached: nothing of the request is known to anybody. */
  #sessionLost(): void {
    if (this.#streamed) this.#fail('offline')
    else if (this.#use.fresh) this.#fail('reset')
    else this.#connect()
  }

  /** A channel that is refused has taken nothing of the request: the next session is asked. */
  #refused(): void {
    const session = this.#session
    if (session) {
      this.#context.sessions.refused(session)
      this.#tried ??= new Set()
      this.#tried.add(session)
    }
    if (this.#streamed) this.#failRefused()
    else this.#connect()
  }

  /** A request that is sent again has lost its target between the two tries. */
  #failRefused(): void {
    this.#fail(this.#use.fresh ? 'reset' : 'refused')
  }

  /** Closed before the response: a link that waited too long may have been closed before the request came. */
  #unanswered(): void {
    this.#close()
    const { sessions, limits, now } = this.#context
    const session = sessions.pick(this.#asked.route.hostname)
    // Who has had a request for longer has most likely begun to work on it.
    const isJustSent = now() - this.#sentAt < limits.staleMs
    const isStale = this.#use.reused && !this.#use.fresh && this.#replayable && this.#relay.isUntouched && isJustSent
    // Without a session it was no stale link: the client went with the request.
    if (!isStale || !session) return this.#fail(this.#isSessionThere ? 'reset' : 'lost')
    this.#use.fresh = true
    this.#attach(session, now())
  }

  #fail(upstream: Exclude<Upstream, 'unknown'>): void {
    this.#answer(UPSTREAM_REJECTIONS[upstream])
  }

  #answer(rejection: Rejection): void {
    const { arrival, visit } = this.#asked
    this.#close()
    const answer = responseFor(rejection, { id: visit.id, head: arrival.head, location: '', challenge: undefined })
    this.#answered = arrival.head.method === 'HEAD' ? 0 : Buffer.byteLength(answer.body)
    this.#over(rejection.status, rejection.reason)
    this.#visitor.answer(answer)
  }

  #close(): void {
    this.#abort?.abort()
    this.#connection?.discard()
    this.#connection = undefined
  }

  /** `reason`: why the edge has answered, or ended it. */
  #over(status: number, reason: RequestReason | null): void {
    this.#state = 'over'
    this.#message = undefined
    const { journal, metrics, load, now } = this.#context
    const { arrival, route, visit, observed } = this.#asked
    const record = {
      id: visit.id,
      tunnel: route.id,
      at: arrival.at,
      method: arrival.head.method,
      path: observed.path,
      status,
      durationMs: Math.round(now() - arrival.began),
      bytesIn: this.#visitor.bytesIn + this.#rawIn,
      bytesOut: this.#relay.bytesOut + this.#answered,
      sourceIp: observed.sourceIp,
      origin: this.#relay.began ? ('backend' as const) : ('edge' as const),
      reason,
      protocol: arrival.protocol,
    }
    load.leave(route.hostname)
    journal.request(record)
    metrics.finished(record)
  }
}
