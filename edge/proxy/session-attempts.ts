import type { Buffer } from 'node:buffer'
import { type Rejection, type Upstream, UPSTREAM_REJECTIONS } from '../../shared/tunnel-decisions.ts'
import type { Session } from '../sessions.ts'
import type { ExchangeInput } from './arrival.ts'
import type { ProxyContext } from './context.ts'
import { forwardedRequest } from './head/forward-heads.ts'
import {
  isRepeatable,
  isReplayable,
  lend,
  type UpstreamConnection,
  type UpstreamEnd,
  type UpstreamUser,
} from './upstream/pool.ts'
import { Relay, type RelayOwner } from './upstream/relay.ts'
import type { Visitor } from './visitor.ts'

/**
 * Attempts of one request to reach its backend: it waits for a session, is sent, and is sent again while no backend has taken it. The
 * class that extends it forwards the rest and ends the exchange. Both are one object, because every request passes through both.
 */
export abstract class SessionAttempts implements UpstreamUser, RelayOwner {
  /** Whether the whole request has been sent. */
  sent: boolean
  protected readonly context: ProxyContext
  protected readonly visitor: Visitor
  protected readonly input: ExchangeInput
  protected readonly relay: Relay
  protected state: 'waiting' | 'sent' | 'over' = 'waiting'
  protected connection: UpstreamConnection | undefined
  /** Session that owns the upstream connection. */
  #session: Session | undefined
  /** Sessions that refused a channel for this request. */
  #tried: Set<Session> | undefined
  /** Head of the request, and the part of its body that came with it. */
  protected message: Buffer | undefined
  /** Whether more than the message has been sent. */
  protected streamed = false
  protected readonly use = { reused: false, fresh: false, paused: false }
  /** Time at which a part of the request was last sent. */
  protected sentAt = 0
  #abort: AbortController | undefined

  constructor(context: ProxyContext, visitor: Visitor, input: ExchangeInput) {
    const { arrival, route } = input
    this.context = context
    this.visitor = visitor
    this.input = input
    this.sent = arrival.ended
    const modifications = context.modificationsOf(route.config).response
    const { head: request, protocol } = arrival
    this.relay = new Relay({ visitor, owner: this, request, protocol, host: route.host, modifications })
  }

  abstract upstreamData(chunk: Buffer): void
  abstract upstreamDrained(): void
  abstract upstreamEnded(): void
  abstract upstreamClosed(end: UpstreamEnd): void
  abstract responseHeld(): void
  abstract responseInvalid(): void
  abstract responseBroken(): void
  abstract responseEnded(keeps: boolean): void

  /** Ends the exchange with a response of the edge. */
  protected abstract rejectWith(rejection: Rejection): void

  get #replayable(): boolean {
    return this.sent && isReplayable(this.input.arrival.head)
  }

  /** Whether the session still serves its tunnel; a retired session does not. */
  get #isSessionThere(): boolean {
    return this.context.sessions.of(this.input.route.hostname).some(({ id }) => id === this.#session?.id)
  }

  /** Selects a session and sends the request. `at`: current time. */
  protected connect(at = this.context.now()): void {
    const session = this.context.sessions.pick(this.input.route.hostname, this.#tried)
    if (session) this.#attach(session, at)
    else if (this.#tried) this.#failRefused()
    else this.#hold()
  }

  /** Waits for a session. `otherwise`: reason of the failure when none comes in time. */
  #hold(otherwise: 'offline' | 'lost' = 'offline'): void {
    const { sessions, limits, now, log } = this.context
    const left = this.input.arrival.began + limits.holdMs - now()
    this.state = 'waiting'
    if (!this.sent) this.visitor.hold()
    if (left <= 0) return this.fail(otherwise)
    this.#abort = new AbortController()
    const arrived = (session: Session | undefined) => {
      if (this.state !== 'waiting') return
      if (session) this.#attach(session, now())
      else this.fail(otherwise)
    }
    sessions.waitFor(this.input.route.hostname, left, this.#abort.signal).then(arrived, (error: unknown) => {
      log.error({ err: error }, 'waiting for a session failed')
      arrived(undefined)
    })
  }

  #attach(session: Session, at: number): void {
    const { pools } = this.context
    const { arrival, route } = this.input
    const use = this.use.fresh ? 'fresh' : this.#replayable ? 'replayable' : 'once'
    const origin = { address: arrival.peer, port: arrival.peerPort }
    const connection = pools.take(session, { origin, use, target: route.config.target })
    lend(connection, this)
    this.connection = connection
    this.#session = session
    this.relay.from(connection.heads)
    this.use.reused = connection.uses > 1
    this.state = 'sent'
    this.sentAt = at
    this.message ??= this.#compose()
    const open = connection.channel.write(this.message)
    if (open && !this.sent) this.visitor.resume()
  }

  #compose(): Buffer {
    const { arrival, route, visit } = this.input
    return forwardedRequest(arrival.head, visit, this.context.modificationsOf(route.config).request, arrival.first)
  }

  /** Retries after the session ended before the channel was open: nothing of the request was delivered. */
  protected sessionLost(): void {
    if (this.streamed) this.fail('offline')
    else if (this.use.fresh) this.fail('reset')
    else this.connect()
  }

  /** Tries the next session: a refused channel has taken nothing of the request. */
  protected refused(): void {
    const session = this.#session
    if (session) {
      this.context.sessions.refused(session)
      this.#tried ??= new Set()
      this.#tried.add(session)
    }
    if (this.streamed) this.#failRefused()
    else this.connect()
  }

  /** Rejects the request after all sessions refused. A request that is being sent again had reached its target before. */
  #failRefused(): void {
    this.fail(this.use.fresh ? 'reset' : 'refused')
  }

  /**
   * Handles a connection that ended before the response. The request is sent again, once, when a reused connection may have been closed
   * before the request arrived, and when the client was lost and the request is idempotent (RFC 9110, section 9.2.2).
   */
  protected unanswered(): void {
    this.close()
    const { sessions, now } = this.context
    const isLost = !this.#isSessionThere
    const isAgain = !this.use.fresh && this.relay.isUntouched && (isLost ? this.#isRepeatable : this.#isStale)
    if (!isAgain) return this.fail(isLost ? 'lost' : 'reset')
    this.use.fresh = true
    const session = sessions.pick(this.input.route.hostname)
    if (session) this.#attach(session, now())
    else this.#hold('lost')
  }

  /** Whether all that was sent of the request can be sent again. */
  get #isRepeatable(): boolean {
    return !this.streamed && isRepeatable(this.input.arrival.head)
  }

  /** Whether the connection had probably ended when the request was sent on it. */
  get #isStale(): boolean {
    // A backend that had the request for longer has probably begun to process it.
    const isJustSent = this.context.now() - this.sentAt < this.context.limits.staleMs
    return this.use.reused && this.#replayable && isJustSent
  }

  protected fail(upstream: Exclude<Upstream, 'unknown'>): void {
    this.rejectWith(UPSTREAM_REJECTIONS[upstream])
  }

  protected close(): void {
    this.#abort?.abort()
    this.connection?.discard()
    this.connection = undefined
  }
}
