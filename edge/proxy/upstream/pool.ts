import type { Origin, Session } from '../../session.ts'
import { UpstreamConnection, type UpstreamUser } from './upstream-connection.ts'

interface Deps {
  /** Milliseconds since some moment. */
  readonly now: () => number
  /** How long a link may wait for its next request. A client's cost per request grows with the channels that are open. */
  readonly idleMs: number
  /** How long the last one of a session may wait: it saves the next request a round trip. */
  readonly spareMs: number
}

/** For so long after a target has changed, an edge that a session is of may not have heard of it: links from then serve one request alone. */
const TARGET_SPREAD_MS = 2_000

/** Where the links of a session period, and from when on those that are opened are sure to. */
interface TargetPeriod {
  readonly target: string | undefined
  readonly from: number
}

/** What is asked of a link. */
export interface UpstreamRequest {
  readonly origin: Origin
  /**
   * `replayable`: the request can be sent again should the link turn out to have been closed meanwhile; another gets one that was used just now, or a new one.
   * `fresh`: a new one at any rate.
   */
  readonly use: 'replayable' | 'once' | 'fresh'
  /** The tunnel's setting of this moment: a link that was opened under another one periods elsewhere. */
  readonly target: string | undefined
}

/** Links to backends between requests, by session: last in, first out. */
export interface Pools {
  /** A link for a request. */
  take(session: Session, want: UpstreamRequest): UpstreamConnection
  /** Gives back a link whose last response has ended cleanly. */
  give(connection: UpstreamConnection): void
  /** A session takes no more requests, until one is led to it again: its links that wait are closed, the others when they are given back. */
  retire(session: Session): void
  /** Closes what has waited too long. */
  sweep(): void
  close(): void
  readonly idle: number
}

export function createPools({ now, idleMs, spareMs }: Deps): Pools {
  /** Of each session, the one idle longest first. */
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
    // One that was to go, and is asked again since.
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

/** Gives the link to a request. */
export function lend(connection: UpstreamConnection, user: UpstreamUser): void {
  connection.uses++
  connection.user = user
}
