import type { Origin, Session } from '../../sessions.ts'
import { hasBody, type RequestHead } from '../head/request-head.ts'
import { HeadReader } from '../http1/head-reader.ts'
import { readResponseHead, type ResponseHead } from '../head/response-head.ts'
import type { Channel, ChannelEvents } from '../../channels/channel.ts'

interface Deps {
  /** Monotonic clock in milliseconds. */
  readonly now: () => number
  /** Maximum idle time. A client's cost per request grows with its open channels. */
  readonly idleMs: number
  /** Maximum idle time of a session's last connection, which saves the next request a round trip. */
  readonly spareMs: number
}

/**
 * Time after a change of the target in which the edge that owns the session may not know it: connections opened in that time serve one
 * request only.
 */
const TARGET_SPREAD_MS = 2_000

/** Target of a session, and the time from which new connections are certain to lead to it. */
interface TargetPeriod {
  readonly target: string | undefined
  readonly from: number
}

/** Requirements for an upstream connection. */
interface UpstreamRequest {
  readonly origin: Origin
  /**
   * `replayable`: any idle connection, because the request can be sent again if that one was closed meanwhile. `once`: one that was
   * used just now, or a new one. `fresh`: a new one.
   */
  readonly use: 'replayable' | 'once' | 'fresh'
  /** Current target of the tunnel: a connection that was opened for another target is not used. */
  readonly target: string | undefined
}

/** Idle upstream connections by session: last in, first out. */
export interface Pools {
  /** Returns a connection for a request. */
  take(session: Session, requirements: UpstreamRequest): UpstreamConnection
  /** Returns a connection to the pool after its response has ended cleanly. */
  give(connection: UpstreamConnection): void
  /** Stops using a session, until a request selects it again: closes its idle connections, and the others when they are returned. */
  retire(session: Session): void
  /** Closes connections that exceed their idle time. */
  sweep(): void
  close(): void
  readonly idle: number
}

export function createPools({ now, idleMs, spareMs }: Deps): Pools {
  /** Idle connections of each session, the longest idle first. */
  const waiting = new Map<Session, UpstreamConnection[]>()
  const retired = new WeakSet<Session>()
  const periods = new WeakMap<Session, TargetPeriod>()

  function forget(connection: UpstreamConnection): void {
    const connections = waiting.get(connection.session)
    const index = connections?.lastIndexOf(connection) ?? -1
    if (connections === undefined || index < 0) return
    connections.splice(index, 1)
    if (connections.length === 0) waiting.delete(connection.session)
  }

  function periodOf(session: Session, target: string | undefined): TargetPeriod {
    const known = periods.get(session)
    if (known !== undefined && known.target === target) return known
    const period = { target, from: known === undefined ? -Infinity : now() + TARGET_SPREAD_MS }
    periods.set(session, period)
    discardAll(session)
    return period
  }

  function discardAll(session: Session): void {
    for (const connection of [...(waiting.get(session) ?? [])]) connection.discard()
  }

  function open(session: Session, origin: Origin, period: TargetPeriod): UpstreamConnection {
    const connection = new UpstreamConnection(session, origin, forget)
    if (now() >= period.from) connection.period = period
    return connection
  }

  function take(session: Session, { origin, use, target }: UpstreamRequest): UpstreamConnection {
    // The session may have been retired and selected again.
    retired.delete(session)
    const period = periodOf(session, target)
    const connections = use === 'fresh' ? undefined : waiting.get(session)
    const last = connections?.at(-1)
    if (connections === undefined || last === undefined || (use === 'once' && now() - last.idleSince > idleMs)) {
      return open(session, origin, period)
    }
    connections.pop()
    if (connections.length === 0) waiting.delete(session)
    return last
  }

  function give(connection: UpstreamConnection): void {
    connection.user = undefined
    if (retired.has(connection.session) || connection.period !== periods.get(connection.session)) {
      connection.discard()
      return
    }
    connection.idleSince = now()
    const connections = waiting.get(connection.session)
    if (connections) connections.push(connection)
    else waiting.set(connection.session, [connection])
  }

  function sweep(): void {
    const at = now()
    for (const connections of [...waiting.values()]) {
      const overdue = connections.filter(
        (connection, index) => at - connection.idleSince >= (index === connections.length - 1 ? spareMs : idleMs),
      )
      for (const connection of overdue) connection.discard()
    }
  }

  return {
    take,
    give,
    retire(session) {
      retired.add(session)
      discardAll(session)
    },
    sweep,
    close() {
      for (const connection of [...waiting.values()].flat()) connection.discard()
    },
    get idle() {
      let count = 0
      for (const connections of waiting.values()) count += connections.length
      return count
    },
  }
}

/** Assigns the connection to a request. */
export function lend(connection: UpstreamConnection, user: UpstreamUser): void {
  connection.uses++
  connection.user = user
}

type Head = Pick<RequestHead, 'method' | 'upgrade' | 'framing'>

/** Idempotent methods (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
/** Methods whose body many servers ignore: they would read it as the next request and answer it on the same channel. */
const BODILESS = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE'])

/** Whether a request may be sent once more although a backend may have processed it. */
export const isRepeatable = (head: Head): boolean => head.upgrade === undefined && IDEMPOTENT.has(head.method)

/** Whether a completely sent request may be sent once more because its connection was stale. */
export const isReplayable = (head: Head): boolean => isRepeatable(head) && !hasBody(head)

/** Whether the upstream connection can take another request after this one. */
export const leavesReusableConnection = (head: Head): boolean => !(hasBody(head) && BODILESS.has(head.method))

/** Reasons for the end of an upstream connection. `ended` and `lost` occur before or during a response. */
export type UpstreamEnd = 'connect_failed' | 'prohibited' | 'session_lost' | 'ended' | 'lost'

/** Request that uses an upstream connection. */
export interface UpstreamUser {
  upstreamData(chunk: Buffer): void
  upstreamDrained(): void
  /** The target ended its side; bytes for it may still be in flight. */
  upstreamEnded(): void
  /** Last call: the channel was refused, or closed. */
  upstreamClosed(end: UpstreamEnd): void
}

/** Channel to the backend that serves one request after the other. */
export class UpstreamConnection implements ChannelEvents {
  readonly session: Session
  readonly channel: Channel
  /** Reader of the response heads on this connection. */
  readonly heads = new HeadReader<ResponseHead | undefined>(readResponseHead, undefined)
  user: UpstreamUser | undefined
  /** Number of requests that have used it. */
  uses = 0
  idleSince = 0
  /** Period of the target in which it was opened. Undefined: it serves one request only. */
  period: object | undefined
  readonly #onIdleEnd: (connection: UpstreamConnection) => void

  /** `onIdleEnd` is called when it ends or receives bytes while no request uses it. */
  constructor(session: Session, origin: Origin, onIdleEnd: (connection: UpstreamConnection) => void) {
    this.session = session
    this.#onIdleEnd = onIdleEnd
    this.channel = session.open(origin, this)
  }

  opened(): void {
    // Nothing to do: bytes that were written before are sent then.
  }

  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void {
    this.#end(why)
  }

  data(chunk: Buffer): void {
    if (this.user) this.user.upstreamData(chunk)
    else this.discard()
  }

  drained(): void {
    this.user?.upstreamDrained()
  }

  ended(): void {
    if (this.user) this.user.upstreamEnded()
    else this.discard()
  }

  closed({ lost }: { readonly lost: boolean }): void {
    this.#end(lost ? 'lost' : 'ended')
  }

  /** Closes the connection without a further event to its user. */
  discard(): void {
    if (!this.user) this.#onIdleEnd(this)
    this.user = undefined
    this.channel.destroy()
  }

  #end(end: UpstreamEnd): void {
    const { user } = this
    this.user = undefined
    if (user) user.upstreamClosed(end)
    else this.#onIdleEnd(this)
  }
}
