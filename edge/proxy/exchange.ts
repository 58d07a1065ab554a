import { Buffer } from 'node:buffer'
import type { Accepted, Visitor } from './visitor.ts'
import type { RequestHead, Visit } from './head/request-head.ts'
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
import type { Session } from '../sessions.ts'
import type { ProxyContext } from './context.ts'
import { responseFor, BAD_BODY } from './errors.ts'
import { forwardedRequest } from './head/forward-heads.ts'
import {
  type UpstreamConnection,
  type UpstreamEnd,
  type UpstreamUser,
  lend,
  isReplayable,
  leavesReusableConnection,
} from './upstream/pool.ts'
import { Relay, type RelayOwner } from './upstream/relay.ts'
import { keptTrailers } from './head/trailers.ts'

/** Request whose head has arrived. */
export interface Arrival {
  readonly head: RequestHead
  /** Arrival of the head, in milliseconds since the epoch. */
  readonly at: number
  /** Arrival of the head by the monotonic clock. */
  readonly began: number
  readonly scheme: 'http' | 'https'
  /** Server name as in {@link Accepted}. */
  readonly serverName: Accepted['serverName']
  /** Plain address, as {@link plainAddress} returns it. */
  readonly peer: string
  readonly peerPort: number
  readonly protocol: 'http/1.1' | 'h2'
  /** Whether its connection exceeds a limit. */
  readonly surplus: boolean
  /** Beginning of the body that has arrived; `ended`: that is the whole body. */
  readonly first: Buffer | undefined
  readonly ended: boolean
  /** Trailers of a complete body: lines with their CRLF, latin1. */
  readonly trailers: string
}

/** Accepted request, with its tunnel. */
export interface ExchangeInput {
  readonly arrival: Arrival
  readonly route: Route
  readonly visit: Visit
  /** Facts that the decision to serve the request was based on. */
  readonly observed: ObservedRequest
}

/** Status in the journal when the visitor disconnected before a response. */
const GONE = 499

/**
 * One request and its response, from the visitor to an upstream connection and back. The request waits for a session first, then is
 * sent. Each exchange makes one record in the journal.
 */
export class Exchange implements UpstreamUser, RelayOwner {
  /** Whether the whole request has been sent. */
  sent: boolean
  readonly #context: ProxyContext
  readonly #visitor: Visitor
  readonly #input: ExchangeInput
  readonly #relay: Relay
  #state: 'waiting' | 'sent' | 'over' = 'waiting'
  #connection: UpstreamConnection | undefined
  /** Session that owns the upstream connection. */
  #session: Session | undefined
  /** Sessions that refused a channel for this request. */
  #tried: Set<Session> | undefined
  /** Head of the request, and the part of its body that came with it. */
  #message: Buffer | undefined
  /** Whether more than the message has been sent. */
  #streamed = false
  #use = { reused: false, fresh: false, paused: false }
  /** Time at which a part of the request was last sent. */
  #sentAt = 0
  #abort: AbortController | undefined
  #rawIn = 0
  #answered = 0

  constructor(context: ProxyContext, visitor: Visitor, input: ExchangeInput) {
    const { arrival, route } = input
    this.#context = context
    this.#visitor = visitor
    this.#input = input
    this.sent = arrival.ended
    const modifications = context.modificationsOf(route.config).response
    const { head: request, protocol } = arrival
    this.#relay = new Relay({ visitor, owner: this, request, protocol, host: route.host, modifications })
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  /** Whether the response has begun: the visitor need not send the rest of its request then (RFC 9110, section 10.1.1). */
  get began(): boolean {
    return this.#relay.began
  }

  start(): void {
    const { route, arrival } = this.#input
    this.#context.load.enter(route.hostname)
    if (this.takesTrailers(arrival.trailers)) this.#connect(arrival.began)
    else this.stop(BAD_BODY)
  }

  /**
   * Whether all trailers of the request's body may be forwarded: lines with their CRLF. Forbidden trailers are removed from a response;
   * a request is rejected, because some of its lines may have been forwarded already.
   */
  takesTrailers(lines: string): boolean {
    const { arrival, route } = this.#input
    return (
      lines === '' || keptTrailers(lines, arrival.head.framing, this.#context.modificationsOf(route.config).request) === lines
    )
  }

  /** Sends more of the request's body in the form for the backend. `ended`: the body is complete. */
  write(chunk: Buffer, progress: 'more' | 'ended'): void {
    if (!this.#connection) {
      // The rest of an answered request is dropped. A waiting request holds its visitor: further bytes must not be lost silently.
      if (this.#state === 'waiting') this.#fail('offline')
      return
    }
    this.#streamed = true
    this.sent = progress === 'ended'
    this.#sentAt = this.#context.now()
    if (!this.#connection.channel.write(chunk)) this.#visitor.hold()
  }

  /** Sends bytes of the visitor after an upgrade. */
  writeBytes(chunk: Buffer): void {
    this.#rawIn += chunk.length
    if (this.#connection && !this.#connection.channel.write(chunk)) this.#visitor.hold()
  }

  /** Ends the visitor's side after an upgrade. */
  endBytes(): void {
    this.#connection?.channel.end()
  }

  visitorDrained(): void {
    if (!this.#use.paused) return
    this.#use.paused = false
    this.#connection?.channel.resume()
  }

  /** Ends the exchange because the visitor disconnected, or must be disconnected for `reason`. */
  visitorGone(reason: RequestReason = 'visitor_gone'): void {
    if (this.#state === 'over') return
    this.#close()
    // After an upgrade, either side may end the exchange.
    const isOrderly = this.#relay.isRaw && reason === 'visitor_gone'
    if (this.#relay.began) this.#over(this.#relay.status, isOrderly ? null : reason)
    else this.#over(GONE, reason)
  }

  /**
   * Rejects a request whose rest is invalid or late. Returns false when the response has begun: the caller must cut off the visitor.
   */
  stop(rejection: Rejection): boolean {
    if (this.#state === 'over') return false
    const answerable = !this.#relay.began
    if (answerable) this.#answer(rejection)
    else this.visitorGone(rejection.reason)
    return answerable
  }

  /**
   * Ends the request when its tunnel is in `hostnames` and no longer allows it. Returns true when the response has begun: the caller
   * must cut off the visitor.
   */
  revoke(hostnames: ReadonlySet<string>): boolean {
    const { route, observed } = this.#input
    if (this.#state === 'over' || !hostnames.has(route.hostname)) return false
    const current = this.#context.routes.get(route.hostname)
    const rejection = firstRejection(ACCESS_CHECKS, { ...observed, tunnel: current?.id === route.id ? current : undefined })
    return rejection !== undefined && !this.stop(rejection)
  }

  tick(now: number): void {
    if (this.#state !== 'sent' || this.#relay.began) return
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
    if (connection && keeps && this.sent && leavesReusableConnection(this.#input.arrival.head)) {
      if (this.#use.paused) connection.channel.resume()
      this.#context.pools.give(connection)
    } else connection?.discard()
    this.#over(this.#relay.status, null)
    this.#visitor.end(this.#relay.trailers)
  }

  get #replayable(): boolean {
    return this.sent && isReplayable(this.#input.arrival.head)
  }

  /** Whether the session still serves its tunnel; a retired session does not. */
  get #isSessionThere(): boolean {
    return this.#context.sessions.of(this.#input.route.hostname).some(({ id }) => id === this.#session?.id)
  }

  /** Selects a session and sends the request. `at`: current time. */
  #connect(at = this.#context.now()): void {
    const session = this.#context.sessions.pick(this.#input.route.hostname, this.#tried)
    if (session) this.#attach(session, at)
    else if (this.#tried) this.#failRefused()
    else this.#hold()
  }

  #hold(): void {
    const { sessions, limits, now, log } = this.#context
    const left = this.#input.arrival.began + limits.holdMs - now()
    this.#state = 'waiting'
    if (!this.sent) this.#visitor.hold()
    if (left <= 0) return this.#fail('offline')
    this.#abort = new AbortController()
    const arrived = (session: Session | undefined) => {
      if (this.#state !== 'waiting') return
      if (session) this.#attach(session, now())
      else this.#fail('offline')
    }
    sessions.waitFor(this.#input.route.hostname, left, this.#abort.signal).then(arrived, (error: unknown) => {
      log.error({ err: error }, 'waiting for a session failed')
      arrived(undefined)
    })
  }

  #attach(session: Session, at: number): void {
    const { pools } = this.#context
    const { arrival, route } = this.#input
    const use = this.#use.fresh ? 'fresh' : this.#replayable ? 'replayable' : 'once'
    const origin = { address: arrival.peer, port: arrival.peerPort }
    const connection = pools.take(session, { origin, use, target: route.config.target })
    lend(connection, this)
    this.#connection = connection
    this.#session = session
    this.#relay.from(connection.heads)
    this.#use.reused = connection.uses > 1
    this.#state = 'sent'
    this.#sentAt = at
    this.#message ??= this.#compose()
    const open = connection.channel.write(this.#message)
    if (open && !this.sent) this.#visitor.resume()
  }

  #compose(): Buffer {
    const { arrival, route, visit } = this.#input
    return forwardedRequest(arrival.head, visit, this.#context.modificationsOf(route.config).request, arrival.first)
  }

  /** Retries after the session ended before the channel was open: nothing of the request was delivered. */
  #sessionLost(): void {
    if (this.#streamed) this.#fail('offline')
    else if (this.#use.fresh) this.#fail('reset')
    else this.#connect()
  }

  /** Tries the next session: a refused channel has taken nothing of the request. */
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

  /** Rejects the request after all sessions refused. A request that is being sent again had reached its target before. */
  #failRefused(): void {
    this.#fail(this.#use.fresh ? 'reset' : 'refused')
  }

  /**
   * Handles a connection that ended before the response. A reused connection may have been closed before the request arrived; then the
   * request is sent again.
   */
  #unanswered(): void {
    this.#close()
    const { sessions, limits, now } = this.#context
    const session = sessions.pick(this.#input.route.hostname)
    // A backend that had the request for longer has probably begun to process it.
    const isJustSent = now() - this.#sentAt < limits.staleMs
    const isStale = this.#use.reused && !this.#use.fresh && this.#replayable && this.#relay.isUntouched && isJustSent
    // Without a session the client was lost, and the connection was not stale.
    if (!isStale || !session) return this.#fail(this.#isSessionThere ? 'reset' : 'lost')
    this.#use.fresh = true
    this.#attach(session, now())
  }

  #fail(upstream: Exclude<Upstream, 'unknown'>): void {
    this.#answer(UPSTREAM_REJECTIONS[upstream])
  }

  #answer(rejection: Rejection): void {
    const { arrival, visit } = this.#input
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

  /** Records the exchange. `reason`: why the edge responded or ended it. */
  #over(status: number, reason: RequestReason | null): void {
    this.#state = 'over'
    this.#message = undefined
    const { journal, metrics, load, now } = this.#context
    const { arrival, route, visit, observed } = this.#input
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
