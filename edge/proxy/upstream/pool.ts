import type { Origin, Session } from '../../session.ts'
import { Link, type LinkUser } from './link.ts'

interface Deps {
  /** Milliseconds since some moment. */
  readonly now: () => number
  /** How long a link may wait for its next request. A client's cost per request grows with the channels that are open. */
  readonly idleMs: number
  /** How long the last one of a session may wait: it saves the next request a round trip. */
  readonly spareMs: number
}

/** For so long after a target has changed, an edge that a session is of may not have heard of it: links from then serve one request alone. */
const HEARD_MS = 2_000

/** Where the links of a session lead, and from when on those that are opened are sure to. */
interface Lead {
  readonly target: string | undefined
  readonly from: number
}

/** What is asked of a link. */
export interface Want {
  readonly origin: Origin
  /**
   * `replayable`: the request can be sent again should the link turn out to have been closed meanwhile; another gets one that was used just now, or a new one.
   * `fresh`: a new one at any rate.
   */
  readonly use: 'replayable' | 'once' | 'fresh'
  /** The tunnel's setting of this moment: a link that was opened under another one leads elsewhere. */
  readonly target: string | undefined
}

/** Links to backends between requests, by session: last in, first out. */
export interface Pools {
  /** A link for a request. */
  take(session: Session, want: Want): Link
  /** Gives back a link whose last response has ended cleanly. */
  give(link: Link): void
  /** A session takes no more requests, until one is led to it again: its links that wait are closed, the others when they are given back. */
  retire(session: Session): void
  /** Closes what has waited too long. */
  sweep(): void
  close(): void
  readonly idle: number
}

export function createPools({ now, idleMs, spareMs }: Deps): Pools {
  /** Of each session, the one idle longest first. */
  const waiting = new Map<Session, Link[]>()
  const retired = new WeakSet<Session>()
  const leads = new WeakMap<Session, Lead>()

  function forget(link: Link): void {
    const links = waiting.get(link.session)
    const index = links?.lastIndexOf(link) ?? -1
    if (links === undefined || index < 0) return
    links.splice(index, 1)
    if (links.length === 0) waiting.delete(link.session)
  }

  function leadTo(session: Session, target: string | undefined): Lead {
    const known = leads.get(session)
    if (known !== undefined && known.target === target) return known
    const lead = { target, from: known === undefined ? -Infinity : now() + HEARD_MS }
    leads.set(session, lead)
    discardAll(session)
    return lead
  }

  function discardAll(session: Session): void {
    for (const link of [...(waiting.get(session) ?? [])]) link.discard()
  }

  function open(session: Session, origin: Origin, lead: Lead): Link {
    const link = new Link(session, origin, forget)
    if (now() >= lead.from) link.lead = lead
    return link
  }

  function take(session: Session, { origin, use, target }: Want): Link {
    // One that was to go, and is asked again since.
    retired.delete(session)
    const lead = leadTo(session, target)
    const links = use === 'fresh' ? undefined : waiting.get(session)
    const last = links?.at(-1)
    if (links === undefined || last === undefined || (use === 'once' && now() - last.idleSince > idleMs)) {
      return open(session, origin, lead)
    }
    links.pop()
    if (links.length === 0) waiting.delete(session)
    return last
  }

  function give(link: Link): void {
    link.user = undefined
    if (retired.has(link.session) || link.lead !== leads.get(link.session)) {
      link.discard()
      return
    }
    link.idleSince = now()
    const links = waiting.get(link.session)
    if (links) links.push(link)
    else waiting.set(link.session, [link])
  }

  function sweep(): void {
    const at = now()
    for (const links of [...waiting.values()]) {
      const overdue = links.filter((link, index) => at - link.idleSince >= (index === links.length - 1 ? spareMs : idleMs))
      for (const link of overdue) link.discard()
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
      for (const link of [...waiting.values()].flat()) link.discard()
    },
    get idle() {
      let count = 0
      for (const links of waiting.values()) count += links.length
      return count
    },
  }
}

/** Gives the link to a request. */
export function lend(link: Link, user: LinkUser): void {
  link.uses++
  link.user = user
}
