import { Buffer } from 'node:buffer'
import { ACCESS_CHECKS, firstRejection, type Rejection, type RequestReason } from '../../shared/tunnel-decisions.ts'
import { BAD_BODY, responseFor } from './errors.ts'
import { keptTrailers } from './head/trailers.ts'
import { SessionAttempts } from './session-attempts.ts'
import { leavesReusableConnection, type UpstreamEnd } from './upstream/pool.ts'

/** Status in the journal when the visitor disconnected before a response. */
const GONE = 499

/**
 * One request and its response, from the visitor to an upstream connection and back; {@link SessionAttempts} has its beginning. Each exchange makes one record in the journal.
 */
export class Exchange extends SessionAttempts {
  #rawIn = 0
  #answered = 0

  get isOver(): boolean {
    return this.state === 'over'
  }

  /** Whether the response has begun: the visitor need not send the rest of its request then (RFC 9110, section 10.1.1). */
  get began(): boolean {
    return this.relay.began
  }

  start(): void {
    const { route, arrival } = this.input
    this.context.load.enter(route.hostname)
    if (this.takesTrailers(arrival.trailers)) this.connect(arrival.began)
    else this.stop(BAD_BODY)
  }

  /**
   * Whether all trailers of the request's body may be forwarded: lines with their CRLF. Forbidden trailers are removed from a response;
   * a request is rejected, because some of its lines may have been forwarded already.
   */
  takesTrailers(lines: string): boolean {
    const { arrival, route } = this.input
    return lines === '' || keptTrailers(lines, arrival.head.framing, this.context.modificationsOf(route.config).request) === lines
  }

  /** Sends more of the request's body in the form for the backend. `ended`: the body is complete. */
  write(chunk: Buffer, progress: 'more' | 'ended'): void {
    if (!this.connection) {
      // The rest of an answered request is dropped. A waiting request holds its visitor: further bytes must not be lost silently.
      if (this.state === 'waiting') this.fail('offline')
      return
    }
    this.streamed = true
    this.sent = progress === 'ended'
    this.sentAt = this.context.now()
    if (!this.connection.channel.write(chunk)) this.visitor.hold()
  }

  /** Sends bytes of the visitor after an upgrade. */
  writeBytes(chunk: Buffer): void {
    this.#rawIn += chunk.length
    if (this.connection && !this.connection.channel.write(chunk)) this.visitor.hold()
  }

  /** Ends the visitor's side after an upgrade. */
  endBytes(): void {
    this.connection?.channel.end()
  }

  visitorDrained(): void {
    if (!this.use.paused) return
    this.use.paused = false
    this.connection?.channel.resume()
  }

  /** Ends the exchange because the visitor disconnected, or must be disconnected for `reason`. */
  visitorGone(reason: RequestReason = 'visitor_gone'): void {
    if (this.state === 'over') return
    this.close()
    // After an upgrade, either side may end the exchange.
    const isOrderly = this.relay.isRaw && reason === 'visitor_gone'
    if (this.relay.began) this.#over(this.relay.status, isOrderly ? null : reason)
    else this.#over(GONE, reason)
  }

  /**
   * Rejects a request whose rest is invalid or late. Returns false when the response has begun: the caller must cut off the visitor.
   */
  stop(rejection: Rejection): boolean {
    if (this.state === 'over') return false
    const answerable = !this.relay.began
    if (answerable) this.rejectWith(rejection)
    else this.visitorGone(rejection.reason)
    return answerable
  }

  /**
   * Ends the request when its tunnel is in `hostnames` and no longer allows it. Returns true when the response has begun: the caller
   * must cut off the visitor.
   */
  revoke(hostnames: ReadonlySet<string>): boolean {
    const { route, observed } = this.input
    if (this.state === 'over' || !hostnames.has(route.hostname)) return false
    const current = this.context.routes.get(route.hostname)
    const rejection = firstRejection(ACCESS_CHECKS, { ...observed, tunnel: current?.id === route.id ? current : undefined })
    return rejection !== undefined && !this.stop(rejection)
  }

  tick(now: number): void {
    if (this.state !== 'sent' || this.relay.began) return
    if (now - this.sentAt >= this.context.limits.upstreamMs) this.fail('timeout')
  }

  upstreamDrained(): void {
    if (this.relay.isRaw || !this.sent) this.visitor.resume()
  }

  upstreamData(chunk: Buffer): void {
    this.relay.data(chunk)
  }

  upstreamEnded(): void {
    if (this.relay.isRaw) this.visitor.endBytes()
    else if (this.relay.began) this.relay.ended()
    else this.unanswered()
  }

  upstreamClosed(end: UpstreamEnd): void {
    this.connection = undefined
    if (this.relay.isRaw) {
      this.#over(this.relay.status, null)
      this.visitor.cut()
    } else if (this.relay.began) this.responseBroken()
    else if (end === 'session_lost') this.sessionLost()
    else if (end === 'ended' || end === 'lost') this.unanswered()
    else this.refused()
  }

  responseHeld(): void {
    this.use.paused = true
    this.connection?.channel.pause()
  }

  responseInvalid(): void {
    this.fail('invalid')
  }

  responseBroken(): void {
    this.close()
    this.#over(this.relay.status, 'upstream_reset')
    this.visitor.cut()
  }

  responseEnded(keeps: boolean): void {
    const connection = this.connection
    this.connection = undefined
    if (connection && keeps && this.sent && leavesReusableConnection(this.input.arrival.head)) {
      if (this.use.paused) connection.channel.resume()
      this.context.pools.give(connection)
    } else connection?.discard()
    this.#over(this.relay.status, null)
    this.visitor.end(this.relay.trailers)
  }

  protected rejectWith(rejection: Rejection): void {
    const { arrival, visit } = this.input
    this.close()
    const answer = responseFor(rejection, { id: visit.id, head: arrival.head, location: '', challenge: undefined })
    this.#answered = arrival.head.method === 'HEAD' ? 0 : Buffer.byteLength(answer.body)
    this.#over(rejection.status, rejection.reason)
    this.visitor.answer(answer)
  }

  /** Records the exchange. `reason`: why the edge responded or ended it. */
  #over(status: number, reason: RequestReason | null): void {
    this.state = 'over'
    this.message = undefined
    const { journal, metrics, load, now } = this.context
    const { arrival, route, visit, observed } = this.input
    const record = {
      id: visit.id,
      tunnel: route.id,
      at: arrival.at,
      method: arrival.head.method,
      path: observed.path,
      status,
      durationMs: Math.round(now() - arrival.began),
      bytesIn: this.visitor.bytesIn + this.#rawIn,
      bytesOut: this.relay.bytesOut + this.#answered,
      sourceIp: observed.sourceIp,
      origin: this.relay.began ? ('backend' as const) : ('edge' as const),
      reason,
      protocol: arrival.protocol,
    }
    load.leave(route.hostname)
    journal.request(record)
    metrics.finished(record)
  }
}
