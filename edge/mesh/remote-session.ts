import type { Channel, ChannelEvents } from '../channels/channel.ts'
import type { Login, Origin, Session } from '../session.ts'
import type { SessionEntry } from './messages.ts'

/** Access to the sessions of a peer. */
export interface RemoteOpener {
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
