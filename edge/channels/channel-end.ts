import type { LineShare } from './line-share.ts'
import type { ChannelRequest, RemoteEnd } from './messages.ts'

/** What a client's message about a channel is handed to. */
export interface ChannelEnd {
  confirmed(remote: RemoteEnd): void
  refused(reason: number): void
  adjusted(bytes: number): void
  /** False: the client has sent more than it may. */
  received(data: Buffer, extended: boolean): boolean
  eof(): void
  close(): void
  request(request: ChannelRequest): void
  /** The connection is gone. */
  lost(): void
}

/** Who waits for the line. */
export interface Sender {
  flush(): void
}

/** How messages about channels are sent, by their number on the other side: by SSH, or between edges. */
export interface ChannelWriter {
  /** Nothing may be sent just now. */
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

/** What a channel needs of its connection. */
export interface Carrier {
  readonly wire: ChannelWriter
  /** False while the client's line is full or keys are being exchanged: what is written then waits in its channel. */
  readonly ready: boolean
  readonly roundTripMs: number
  readonly share: LineShare
  /** Has {@link Sender.flush} called when `ready` is true again. */
  block(sender: Sender): void
  /** Received bytes that nobody has read: more, or (negative) less. */
  held(channel: BufferHolder, bytes: number): void
  /** Nothing more comes on the channel: its number may be used again. */
  free(id: number): void
}

/** Who can be made to give back the memory that it holds. */
export interface BufferHolder {
  readonly unreadBytes: number
  destroy(): void
}
