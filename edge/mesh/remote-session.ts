import type { Channel, ChannelEvents } from '../channels/channel.ts'
import type { Login, Origin, Session } from '../session.ts'
import type { SessionEntry } from './messages.ts'

/** How channels of a peer's session are opened. */
export interface RemoteOpener {
  open(session: string, origin: Origin, events: ChannelEvents): Channel
  /** Has the peer show a line on the terminal of the session's client. */
  notify(session: string, line: string): void
  /** The peer does not have it any more. */
  missing(session: RemoteSession): void
}

/** A session that another edge has. */
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

  /** Of this edge alone. */
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
        // Before the caller tries the next: it must not be this one again.
        if (why === 'session_lost') this.#opener.missing(this)
        events.refused(why)
      },
      closed: (how) => {
        this.#channels -= 1
        events.closed(how)
      },
    })
  }

  /** The edge that owns the session applies the limit. */
  notify(line: string): void {
    this.#opener.notify(this.id, line)
  }

  /** Nothing: its owner alone ends it, for it follows the same resources. */
  close(): void {
    return undefined
  }
}
