import type { Channel, ChannelEvents } from './channels/channel.ts'

/** Who opened a connection, as told to the client (RFC 4254, section 7.2: originator). */
export interface Origin {
  readonly address: string
  readonly port: number
}

/** How a client logged in. */
export type Login =
  { readonly authMethod: 'key'; readonly keyFingerprint: string } | { readonly authMethod: 'token'; readonly passwordId: string }

/** One live SSH connection that serves a tunnel. */
export interface Session {
  /** UUIDv7 */
  readonly id: string
  /** The tunnel's: 16 hexadecimal digits. */
  readonly hostname: string
  readonly clientIp: string
  readonly login: Login
  /** Milliseconds since the epoch. */
  readonly since: number
  /** Channels that are open or being opened. */
  readonly channels: number
  /** Never throws: a session that is gone refuses with `session_lost`. */
  open(origin: Origin, events: ChannelEvents): Channel
  /**
   * Shows one line on the client's terminal, on stderr of its session channel: for what its user should know while the tunnel serves, such as a
   * request that its target refused. At most 10 lines a minute, the same line once in 10 s; others are dropped. A client without a
   * session channel (`ssh -N`) shows none. Never throws.
   * @param line a sentence of `edge/ssh/sentences.ts`, at most 400 characters; control characters are replaced
   */
  notify(line: string): void
  /** Ends it with a sentence that the client shows its user. `reason` is a word for the journal. Idempotent. */
  close(reason: string, sentence: string): void
}

/** The live sessions of this edge, by hostname. */
export interface Sessions {
  add(session: Session): void
  remove(session: Session): void
  /**
   * Returns the session to ask next, none of `tried`. Live ones share the load, the newest first; those that lately refused a channel come after the others,
   * and those that may be dead last.
   */
  pick(hostname: string, tried?: ReadonlySet<Session>): Session | undefined
  /** Notes that the session has refused a channel: others of its tunnel are preferred for a while. */
  refused(session: Session): void
  /** The same, waiting up to `ms` for one to come; resolves with undefined when none did or `signal` aborts. */
  waitFor(hostname: string, ms: number, signal: AbortSignal): Promise<Session | undefined>
  of(hostname: string): readonly Session[]
  readonly count: number
}
