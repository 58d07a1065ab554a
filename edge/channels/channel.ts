/**
 * Connection through a client's SSH session to its target: bytes both ways, with back-pressure both ways. Bytes that are written before
 * the client has confirmed the channel wait. Memory is bounded by the windows, if the caller respects the result of `write`.
 */
export interface Channel {
  /**
   * Writes a chunk and takes over its memory. Returns false when enough is waiting: the caller waits for {@link ChannelEvents.drained}.
   * Does nothing after the end.
   */
  write(chunk: Buffer): boolean
  /** Ends our side (RFC 4254, section 5.3: EOF). Data of the target still arrives. */
  end(): void
  /** Closes the channel at once and drops pending data. Idempotent; {@link ChannelEvents.closed} follows. */
  destroy(): void
  /** Stops data until `resume`: the window is not given back meanwhile. */
  pause(): void
  resume(): void
}

/** Events of a channel. `refused` or `closed` is the last call, exactly once. No event is emitted from within `openChannel`. */
export interface ChannelEvents {
  /** The client has connected to its target. */
  opened(): void
  /** The client could not reach its target, does not allow it (RFC 4254, section 5.1), or disconnected before it answered. */
  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void
  data(chunk: Buffer): void
  /** Emitted after a `write` that returned false, when writing may go on. */
  drained(): void
  /** The target has ended its side. */
  ended(): void
  /** `lost`: its session ended, or the channel closed before both sides had ended. */
  closed(how: { readonly lost: boolean }): void
}
