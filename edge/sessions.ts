import type { Channel, ChannelEvents } from './channels/channel.ts'

/** Originator of a connection, as sent to the client (RFC 4254, section 7.2). */
export interface Origin {
  readonly address: string
  readonly port: number
}

/** Method and key or password that a client logged in with. */
export type Login =
  { readonly authMethod: 'key'; readonly keyFingerprint: string } | { readonly authMethod: 'token'; readonly passwordId: string }

/** Live SSH connection that serves a tunnel. */
export interface Session {
  /** Id of the session, a UUIDv7. */
  readonly id: string
  /** Hostname of the tunnel: 16 hexadecimal digits. */
  readonly hostname: string
  readonly clientIp: string
  readonly login: Login
  /** Time of the connection's accept, in milliseconds since the epoch. */
  readonly since: number
  /** Number of channels that are open or being opened. */
  readonly channels: number
  /** Opens a channel to the client's target. Never throws: an ended session refuses with `session_lost`. */
  open(origin: Origin, events: ChannelEvents): Channel
  /**
   * Shows one line on the client's terminal, on stderr of its session channel, for events that the tenant should know while the tunnel
   * serves, such as a request that the target refused. Shows at most 10 lines a minute and an identical line once in 10 s; drops the
   * others. A client without a session channel (`ssh -N`) shows none. Never throws.
   * @param line sentence of `edge/ssh/sentences.ts`, at most 400 characters; control characters are replaced
   */
  notify(line: string): void
  /** Ends the session with a sentence that the client shows its user. `reason` is the code for the journal. Idempotent. */
  close(reason: string, sentence: string): void
}

/** Live sessions by hostname. */
export interface Sessions {
  add(session: Session): void
  remove(session: Session): void
  /**
   * Returns the session for the next request, not in `tried`. Live sessions share the load, the newest first. Sessions that recently
   * refused a channel come after them, and sessions that may be dead come last.
   */
  pick(hostname: string, tried?: ReadonlySet<Session>): Session | undefined
  /** Records that the session refused a channel: other sessions of its tunnel are preferred for 10 s. */
  refused(session: Session): void
  /** Returns a session as `pick` does, waiting at most `ms` for one. Resolves with undefined when none came or `signal` aborts. */
  waitFor(hostname: string, ms: number, signal: AbortSignal): Promise<Session | undefined>
  of(hostname: string): readonly Session[]
  readonly count: number
}

/** Sessions whose liveness the SSH server reports. */
export interface LiveSessions extends Sessions {
  /** Records that the session has answered since the newest session of its tunnel came: it shares the load again. */
  confirm(session: Session): void
}

/** Sessions of this and of other edges. Reports of other edges may arrive in another order than the events happened. */
export interface SharedSessions extends LiveSessions {
  /**
   * Removes a session whose edge was lost. For 10 s, requests for its tunnel are held for a shorter time than for a client that
   * reconnects.
   */
  lose(session: Session): void
  /** Adds an older session of an edge that was not known until now; its age gives its position. */
  join(session: Session, heardAfter: string | undefined): void
  /** Records that the session has answered since the session of id `after` came. This edge may not know that one yet. */
  hear(session: Session, after: string): void
  /** Returns the id of the session that was the newest of its tunnel when this session last answered. */
  heardAfter(session: Session): string | undefined
}

interface Entry {
  readonly session: Session
  alive: boolean
  heardAfter: string | undefined
  /** Time of its last refused channel, in milliseconds of performance.now(). */
  refusedAt: number
}

type Waiter = (session: Session) => void

/**
 * Maximum hold for a tunnel whose edge was lost: visitors get an error within a second. Clients of a lost edge take longer to notice
 * and reconnect.
 */
const HOLD_WITHOUT_EDGE_MS = 800
const SINCE_LOSS_MS = 10_000
/** Time in which a session that refused a channel is less preferred. */
const REFUSAL_MS = 10_000
/** Maximum number of hostnames for which a loss is remembered. */
const MAX_LOST = 50_000

/**
 * Creates the sessions of an edge. When a tunnel's client reconnects, its former connection may be dead without a sign: only the newest
 * session is used until older ones have answered. Live sessions share the load: the one with the fewest channels is next, the newer
 * first. A session that refused a channel, such as one whose target is down, comes last for 10 s.
 */
export function createSessions(): SharedSessions {
  /** Sessions by hostname, newest first. */
  const byHostname = new Map<string, Entry[]>()
  const waiters = new Map<string, Set<Waiter>>()
  /** By hostname, the time at which the edge with the tunnel's last session was lost. */
  const lostAt = new Map<string, number>()
  let count = 0

  function add(session: Session): void {
    insert({ session, alive: true, heardAfter: undefined, refusedAt: -Infinity }, 0)
  }

  function join(session: Session, heardAfter: string | undefined): void {
    const entries = byHostname.get(session.hostname) ?? []
    const older = entries.findIndex((entry) => entry.session.since < session.since)
    insert({ session, alive: true, heardAfter, refusedAt: -Infinity }, older < 0 ? entries.length : older)
  }

  /** Inserts an entry. The first entry is the newest; the others are alive if they have answered since it came. */
  function insert(entry: Entry, index: number): void {
    const { session } = entry
    const entries = (byHostname.get(session.hostname) ?? []).filter((other) => other.session !== session)
    count += 1 + entries.length - (byHostname.get(session.hostname)?.length ?? 0)
    entries.splice(index, 0, entry)
    const [newest] = entries
    if (index === 0) for (const other of entries.slice(1)) other.alive = other.heardAfter === session.id
    else entry.alive = entry.heardAfter === newest?.session.id
    byHostname.set(session.hostname, entries)
    lostAt.delete(session.hostname)
    const waiting = waiters.get(session.hostname)
    waiters.delete(session.hostname)
    for (const resolve of waiting ?? []) resolve(session)
  }

  function remove(session: Session): void {
    const entries = byHostname.get(session.hostname) ?? []
    const left = entries.filter((entry) => entry.session !== session)
    count -= entries.length - left.length
    const [newest] = left
    // Older sessions that have not answered are better than no session.
    if (newest && !left.some(({ alive }) => alive)) newest.alive = true
    if (newest) byHostname.set(session.hostname, left)
    else byHostname.delete(session.hostname)
  }

  function lose(session: Session): void {
    remove(session)
    if (byHostname.has(session.hostname)) return
    // Re-inserted at the end, where the newest are.
    lostAt.delete(session.hostname)
    lostAt.set(session.hostname, performance.now())
    const [oldest] = lostAt.keys()
    if (lostAt.size > MAX_LOST && oldest !== undefined) lostAt.delete(oldest)
  }

  /** Returns how long, in milliseconds, a request that would wait `ms` is held. */
  function holdMs(hostname: string, ms: number): number {
    const at = lostAt.get(hostname)
    if (at === undefined) return ms
    if (performance.now() - at <= SINCE_LOSS_MS) return Math.min(ms, HOLD_WITHOUT_EDGE_MS)
    lostAt.delete(hostname)
    return ms
  }

  const entryOf = (session: Session) => byHostname.get(session.hostname)?.find((entry) => entry.session === session)

  function hear(session: Session, after: string): void {
    const entry = entryOf(session)
    if (!entry) return
    entry.heardAfter = after
    if (byHostname.get(session.hostname)?.[0]?.session.id === after) entry.alive = true
  }

  function pick(hostname: string, tried?: ReadonlySet<Session>): Session | undefined {
    const entries = byHostname.get(hostname)
    if (entries === undefined) return undefined
    let best: Entry | undefined
    for (const entry of entries) {
      if (tried?.has(entry.session)) continue
      if (best === undefined || isPreferred(entry, best)) best = entry
    }
    return best?.session
  }

  function waitFor(hostname: string, ms: number, signal: AbortSignal): Promise<Session | undefined> {
    const session = pick(hostname)
    if (session || signal.aborted || ms <= 0) return Promise.resolve(session)
    return new Promise((resolve) => {
      const end = (found: Session | undefined) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        const waiting = waiters.get(hostname)
        waiting?.delete(end)
        if (waiting?.size === 0) waiters.delete(hostname)
        resolve(found)
      }
      const giveUp = () => {
        end(undefined)
      }
      const timer = setTimeout(giveUp, holdMs(hostname, ms))
      signal.addEventListener('abort', giveUp)
      waiters.set(hostname, (waiters.get(hostname) ?? new Set()).add(end))
    })
  }

  return {
    add,
    remove,
    lose,
    pick,
    waitFor,
    of: (hostname) => (byHostname.get(hostname) ?? []).map(({ session }) => session),
    get count() {
      return count
    },
    join,
    confirm(session) {
      const [newest] = byHostname.get(session.hostname) ?? []
      if (newest) hear(session, newest.session.id)
    },
    refused(session) {
      const entry = entryOf(session)
      if (entry) entry.refusedAt = performance.now()
    },
    hear,
    heardAfter: (session) => entryOf(session)?.heardAfter,
  }
}

/** Whether an entry is preferred to another, newer one. */
function isPreferred(entry: Entry, other: Entry): boolean {
  if (entry.alive !== other.alive) return entry.alive
  if (entry.refusedAt !== other.refusedAt) {
    const now = performance.now()
    const [own, others] = [lateRefusal(entry, now), lateRefusal(other, now)]
    if (own !== others) return own < others
  }
  return entry.session.channels < other.session.channels
}

/** Time of the last refused channel; -Infinity once it is older than 10 s. */
const lateRefusal = ({ refusedAt }: Entry, now: number): number => (now - refusedAt < REFUSAL_MS ? refusedAt : -Infinity)
