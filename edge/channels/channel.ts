import type { LineShare } from './receive-window.ts'

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
  /** The target has closed the channel, and bytes that it sent before may be unread: `closed` follows when they are read. */
  closing?(): void
  /** `lost`: its session ended, or the channel closed before both sides had ended. */
  closed(how: { readonly lost: boolean }): void
}

/** Codes for refusing a channel (RFC 4254, section 5.1). */
export const OpenFailure = { prohibited: 1, connectFailed: 2, unknownType: 3, resourceShortage: 4 } as const

/** Request about a channel (RFC 4254, section 5.4). */
export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  /** Name of a signal, or a command. */
  readonly detail: string
}

/** The other side's end of a channel. */
export interface RemoteEnd {
  readonly id: number
  readonly window: number
  readonly maxPacket: number
}

/** Messages of the other side about channels, by their number on our side. */
export interface ChannelMessages {
  /** `target`: host and port that a `direct-tcpip` channel names (RFC 4254, section 7.2). */
  opening(type: string, remote: RemoteEnd, target?: { readonly host: string; readonly port: number }): void
  confirmed(id: number, remote: RemoteEnd): void
  refused(id: number, reason: number): void
  window(id: number, bytes: number): void
  data(id: number, data: Buffer, extended: boolean): void
  ended(id: number): void
  closed(id: number): void
  request(id: number, request: ChannelRequest): void
}

/** Receiver of a client's messages about one channel. */
export interface ChannelEnd {
  confirmed(remote: RemoteEnd): void
  refused(reason: number): void
  adjusted(bytes: number): void
  /** Returns false when the client has sent more than its window. */
  received(data: Buffer, extended: boolean): boolean
  eof(): void
  close(): void
  request(request: ChannelRequest): void
  /** The connection has ended. */
  lost(): void
}

/** Writer that waits until the line has room. */
export interface Sender {
  flush(): void
}

/** Writer of channel messages, addressed by the channel's number on the other side: over SSH, or between edges. */
export interface ChannelWriter {
  /** True while keys are exchanged: nothing may be sent. */
  readonly exchanging: boolean
  readonly channels: {
    forwardedTcpip(
      channel: number,
      window: number,
      maxPacket: number,
      addresses: {
        readonly boundAddr: string
        readonly boundPort: number
        readonly remoteAddr: string
        readonly remotePort: number
      },
    ): void
    channelData(channel: number, data: Buffer): void
    channelEOF(channel: number): void
    channelClose(channel: number): void
    channelFailure(channel: number): void
    channelWindowAdjust(channel: number, bytes: number): void
  }
}

/** Part of a connection that a channel uses. */
export interface Carrier {
  readonly wire: ChannelWriter
  /** False while the client's line is full or keys are exchanged: written data then waits in its channel. */
  readonly ready: boolean
  readonly roundTripMs: number
  readonly share: LineShare
  /** Calls {@link Sender.flush} when `ready` is true again. */
  block(sender: Sender): void
  /** Adds (or, when negative, subtracts) received bytes that are not read yet. */
  held(channel: BufferHolder, bytes: number): void
  /** Frees the number of a channel on which nothing more comes. */
  free(id: number): unknown
}

/** Holder of unread bytes that can be closed to free memory. */
export interface BufferHolder {
  readonly unreadBytes: number
  destroy(): void
}
