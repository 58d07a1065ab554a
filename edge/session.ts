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
