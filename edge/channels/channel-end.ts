import type { LineShare } from './line-share.ts'
import type { ChannelRequest, RemoteEnd } from './messages.ts'

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
  free(id: number): void
}

/** Holder of unread bytes that can be closed to free memory. */
export interface BufferHolder {
  readonly unreadBytes: number
  destroy(): void
}
