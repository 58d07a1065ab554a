import type { Session, Sessions } from './session.ts'

/** Sessions among which the SSH side says who is alive. */
export interface LiveSessions extends Sessions {
  /** It has answered since the newest of its tunnel came: it takes its share of the load again. */
  confirm(session: Session): void
}

interface Entry {
  readonly session: Session
  alive: boolean
}

type Waiter = (session: Session) => void

/**
 * When a tunnel's client connects again, its former connection may be dead without anyone knowing: the newest session is asked alone,
 * until older ones have been heard of. Those that live share the load: who has the fewest channels is asked next, the newer first.
 */
export function createSessions(): LiveSessions {
  /** Newest first. */
  const byHostname = new Map<string, Entry[]>()
  const waiters = new Map<string, Set<Waiter>>()
  let count = 0

  function add(session: Session): void {
    const others = (byHostname.get(session.hostname) ?? []).filter((entry) => entry.session !== session)
    count += 1 + others.length - (byHostname.get(session.hostname)?.length ?? 0)
    for (const other of others) other.alive = false
    byHostname.set(session.hostname, [{ session, alive: true }, ...others])
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

  function pick(hostname: string): Session | undefined {
    const entries = byHostname.get(hostname)
    if (entries === undefined) return undefined
    let best: Session | undefined
    for (const { session, alive } of entries) {
      if (alive && (best === undefined || session.channels < best.channels)) best = session
    }
    return best
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
      const timer = setTimeout(giveUp, ms)
      signal.addEventListener('abort', giveUp)
      waiters.set(hostname, (waiters.get(hostname) ?? new Set()).add(end))
    })
  }

  return {
    add,
    remove,
    pick,
    waitFor,
    of: (hostname) => (byHostname.get(hostname) ?? []).map(({ session }) => session),
    get count() {
      return count
    },
    confirm(session) {
      const entry = byHostname.get(session.hostname)?.find((candidate) => candidate.session === session)
      if (entry) entry.alive = true
    },
  }
}
