/**
 * One connection through a client's SSH session to its target: bytes both ways, with back-pressure both ways. What is written before the client
 * has confirmed it waits; memory is bounded by the windows and the caller's respect for `write`'s answer.
 */
export interface Channel {
  /** Takes the chunk over. False: enough is waiting, hold back until {@link ChannelEvents.drained}. Nothing happens once it is closed. */
  write(chunk: Buffer): boolean
  /** End of our bytes (RFC 4254, section 5.3: EOF). What comes from the target still arrives. */
  end(): void
  /** Closes it at once, whatever is on the way. Idempotent; {@link ChannelEvents.closed} follows. */
  destroy(): void
  /** No more data until `resume`: the window is not given back meanwhile. */
  pause(): void
  resume(): void
}

/** What its user is told. `refused` or `closed` is the last call, once; none is made from within `openChannel`. */
export interface ChannelEvents {
  /** The client has reached its target. */
  opened(): void
  /** The client could not reach its target, or will not (RFC 4254, section 5.1), or went before it answered. */
  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void
  data(chunk: Buffer): void
  /** May be written to again, after a `write` that said false. */
  drained(): void
  /** The target has ended its side. */
  ended(): void
  /** `lost`: with its session, or before both sides had ended. */
  closed(how: { readonly lost: boolean }): void
}
