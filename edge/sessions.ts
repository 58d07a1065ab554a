import type { Session, Sessions } from './session.ts'

/** Sessions among which the SSH side says who is alive. */
export interface LiveSessions extends Sessions {
  /** It has answered since the newest of its tunnel came: it takes its share of the load again. */
  confirm(session: Session): void
}

/** Those of other edges too, who say these things of theirs; what they say may come in another order than it event. */
export interface SharedSessions extends LiveSessions {
  /** Its edge has gone without a word. For a while those who ask for its tunnel are not held for as long as for a client that drops and comes back. */
  lose(session: Session): void
  /** It was there before, at an edge that was not heard of until now: it has its insert by its age. */
  join(session: Session, heardAfter: string | undefined): void
  /** It has answered since the session of id `after` came, of which this edge may not know yet. */
  hear(session: Session, after: string): void
  /** Id of the session that was the newest of its tunnel when it last answered. */
  heardAfter(session: Session): string | undefined
}

interface Entry {
  readonly session: Session
  alive: boolean
  heardAfter: string | undefined
  /** When it last refused a channel, in milliseconds of performance.now(). */
  refusedAt: number
}

type Waiter = (session: Session) => void

/** Visitors of an edge that died are told so within a second; its clients notice by themselves when they do, and come back to any edge. */
const HOLD_WITHOUT_EDGE_MS = 800
const SINCE_LOSS_MS = 10_000
/** How long a refused channel makes other sessions preferable. */
const REFUSAL_MS = 10_000
/** Hostnames of which that is remembered. */
const MAX_LOST = 50_000

/**
 * When a tunnel's client connects again, its former connection may be dead without anyone knowing: the newest session is asked alone,
 * until older ones have been heard of. Those that live share the load: the one with the fewest channels is asked next, the newer first. A session that refused a
 * channel, as one does whose target is down, is asked after the others for 10 seconds.
 */
export function createSessions(): SharedSessions {
  /** Newest first. */
  const byHostname = new Map<string, Entry[]>()
  const waiters = new Map<string, Set<Waiter>>()
  /** When the edge that had the tunnel's last session was lost. */
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

  /** The first is the newest; of the others those are alive that have answered since it came. */
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
    // Older ones that nobody has heard of are better than none.
    if (newest && !left.some(({ alive }) => alive)) newest.alive = true
    if (newest) byHostname.set(session.hostname, left)
    else byHostname.delete(session.hostname)
  }

  function lose(session: Session): void {
    remove(session)
    if (byHostname.has(session.hostname)) return
    // Again at the end, where the newest are.
    lostAt.delete(session.hostname)
    lostAt.set(session.hostname, performance.now())
    const [oldest] = lostAt.keys()
    if (lostAt.size > MAX_LOST && oldest !== undefined) lostAt.delete(oldest)
  }

  /** Milliseconds that somebody who would wait for `ms` is held. */
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

/** Whether an entry is to be asked before another, newer one. */
function isPreferred(entry: Entry, other: Entry): boolean {
  if (entry.alive !== other.alive) return entry.alive
  if (entry.refusedAt !== other.refusedAt) {
    const now = performance.now()
    const [own, others] = [lateRefusal(entry, now), lateRefusal(other, now)]
    if (own !== others) return own < others
  }
  return entry.session.channels < other.session.channels
}

/** When it last refused a channel; -Infinity once that does not matter any more. */
const lateRefusal = ({ refusedAt }: Entry, now: number): number => (now - refusedAt < REFUSAL_MS ? refusedAt : -Infinity)
