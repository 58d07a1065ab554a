import type { Session, SharedSessions, Login, Origin } from '../sessions.ts'
import type { MeshLink } from './link.ts'
import { type SessionChanges, type SessionEntry, SESSIONS_A_FRAME } from './messages.ts'
import type { Channel, ChannelEvents } from '../channels/channel.ts'

interface Deps {
  /** All sessions that serve visitors, those of peers included. */
  readonly sessions: SharedSessions
  /** Maximum number of sessions of one peer. */
  readonly maxSessions: number
  readonly links: () => Iterable<MeshLink>
  /** A peer has a newer session of this tunnel: the local sessions of the tunnel must be probed. */
  readonly onNewer: (hostname: string) => void
  /** The session takes no more requests; those in progress continue. */
  readonly onRetired: (session: Session) => void
}

/** Sessions of all edges of the endpoint: sends the local ones to the peers, and learns theirs. */
export interface Directory {
  /** Sessions for the SSH server; its reports are sent to all edges. */
  readonly own: SharedSessions
  ownOf(id: string): Session | undefined
  /** Begins to send all local sessions to a peer. */
  begin(link: MeshLink): void
  /** Continues to send the local sessions, as far as the link has room. */
  send(link: MeshLink): void
  /** Applies the changes of a peer. Returns false when the peer has more sessions than allowed. */
  learn(link: MeshLink, changes: SessionChanges): boolean
  /** Removes all sessions of the peer. */
  end(link: MeshLink): void
  /** Number of sessions of other edges. */
  readonly remote: number
}

/** Sessions of one peer, by id. */
type Known = Map<string, RemoteSession>

function forEachKnown<T extends { readonly id: string }>(
  known: Known,
  about: readonly T[],
  act: (session: RemoteSession, what: T) => void,
): void {
  for (const what of about) {
    const session = known.get(what.id)
    if (session) act(session, what)
  }
}

export function createDirectory({ sessions, maxSessions, links, onNewer, onRetired }: Deps): Directory {
  const localSessions = new Map<string, Session>()
  const knownByLink = new Map<MeshLink, Known>()
  /** Ids of sessions that are still to be sent to a peer. */
  const unsent = new Map<MeshLink, string[]>()

  function entryOf({ id, hostname, clientIp, login, since }: Session, heardAfter?: string): SessionEntry {
    return { id, hostname, clientIp, login, since, ...(heardAfter !== undefined && { heardAfter }) }
  }

  function broadcast(changes: SessionChanges): void {
    for (const link of links()) link.sendChanges(changes)
  }

  const own: SharedSessions = {
    ...sessions,
    // A spread would evaluate the getter once.
    get count() {
      return sessions.count
    },
    add(session) {
      localSessions.set(session.id, session)
      sessions.add(session)
      broadcast({ added: [entryOf(session)] })
    },
    remove(session) {
      if (!localSessions.delete(session.id)) return
      sessions.remove(session)
      broadcast({ removed: [session.id] })
    },
    confirm(session) {
      const before = sessions.heardAfter(session)
      sessions.confirm(session)
      const after = sessions.heardAfter(session)
      if (after !== undefined && after !== before) broadcast({ heard: [{ id: session.id, after }] })
    },
  }

  function send(link: MeshLink): void {
    const ids = unsent.get(link)
    while (ids && link.end === undefined && !link.congested) {
      const there = ids.splice(0, SESSIONS_A_FRAME).flatMap((id) => {
        const session = localSessions.get(id)
        return session ? [entryOf(session, sessions.heardAfter(session))] : []
      })
      link.sendChanges({ ...(there.length > 0 && { there }), ...(ids.length === 0 && { complete: true as const }) })
      if (ids.length > 0) continue
      unsent.delete(link)
      return
    }
  }

  function learn(link: MeshLink, changes: SessionChanges): boolean {
    const known = knownByLink.get(link)
    if (!known) return true
    const opener: RemoteOpener = {
      open: (...asked) => link.open(...asked),
      notify: (session, line) => link.notify(session, line),
      missing: (session) => forget(known, session),
    }
    for (const entry of changes.there ?? []) {
      remember(known, new RemoteSession(entry, opener), (session) => sessions.join(session, entry.heardAfter))
    }
    for (const entry of changes.added ?? []) {
      remember(known, new RemoteSession(entry, opener), (session) => sessions.add(session))
    }
    forEachKnown(known, changes.heard ?? [], (session, { after }) => sessions.hear(session, after))
    const removed = (changes.removed ?? []).map((id) => ({ id }))
    forEachKnown(known, removed, (session) => forget(known, session))
    return known.size <= maxSessions
  }

  function remember(known: Known, session: RemoteSession, insert: (session: RemoteSession) => void): void {
    if (known.has(session.id)) return
    known.set(session.id, session)
    insert(session)
    const [newest, ...others] = sessions.of(session.hostname)
    if (newest === session && others.length > 0) onNewer(session.hostname)
  }

  function forget(known: Known, session: RemoteSession): void {
    if (!known.delete(session.id)) return
    sessions.remove(session)
    onRetired(session)
  }

  return {
    own,
    ownOf: (id) => localSessions.get(id),
    begin(link) {
      knownByLink.set(link, new Map())
      unsent.set(link, [...localSessions.keys()])
      send(link)
    },
    send,
    learn,
    end(link) {
      unsent.delete(link)
      const known = knownByLink.get(link)
      knownByLink.delete(link)
      // An edge that shut down in order has removed its sessions before: these were lost.
      for (const session of known?.values() ?? []) sessions.lose(session)
    },
    get remote() {
      return [...knownByLink.values()].reduce((sum, { size }) => sum + size, 0)
    },
  }
}

/** Access to the sessions of a peer. */
interface RemoteOpener {
  open(session: string, origin: Origin, events: ChannelEvents): Channel
  /** Shows a line on the terminal of the session's client. */
  notify(session: string, line: string): void
  /** The peer no longer has this session. */
  missing(session: RemoteSession): void
}

/** Session of a client that is connected to another edge. */
export class RemoteSession implements Session {
  readonly id: string
  readonly hostname: string
  readonly clientIp: string
  readonly login: Login
  readonly since: number
  readonly #opener: RemoteOpener
  #channels = 0

  constructor({ id, hostname, clientIp, login, since }: SessionEntry, opener: RemoteOpener) {
    this.id = id
    this.hostname = hostname
    this.clientIp = clientIp
    this.login = login
    this.since = since
    this.#opener = opener
  }

  /** Number of channels that this edge has opened. */
  get channels(): number {
    return this.#channels
  }

  open(origin: Origin, events: ChannelEvents): Channel {
    this.#channels += 1
    return this.#opener.open(this.id, origin, {
      opened: () => events.opened(),
      data: (chunk) => events.data(chunk),
      drained: () => events.drained(),
      ended: () => events.ended(),
      refused: (why) => {
        this.#channels -= 1
        // Removed before the caller selects the next session: it must not be this one again.
        if (why === 'session_lost') this.#opener.missing(this)
        events.refused(why)
      },
      closed: (how) => {
        this.#channels -= 1
        events.closed(how)
      },
    })
  }

  /** Shows a line; the edge that owns the session applies the rate limit. */
  notify(line: string): void {
    this.#opener.notify(this.id, line)
  }

  /** Does nothing: the edge that owns the session follows the same resources and ends it. */
  close(): void {
    return undefined
  }
}
