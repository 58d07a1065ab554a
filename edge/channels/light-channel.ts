import {
  type Channel,
  type ChannelEvents,
  type Carrier,
  type ChannelEnd,
  type BufferHolder,
  type Sender,
  type ChannelRequest,
  OpenFailure,
  type RemoteEnd,
} from './channel.ts'
import { ReceiveQueue } from './receive-queue.ts'
import type { ReceiveWindow } from './receive-window.ts'
import { MIN_PACKET_BYTES, SendQueue } from './send-queue.ts'

/** Forwarded connection without a stream object: it has its own windows and callbacks. Takes about 1 KB when idle. */
export class LightChannel implements Channel, ChannelEnd, Sender, BufferHolder {
  readonly #id: number
  readonly #carrier: Carrier
  readonly #events: ChannelEvents
  readonly #outgoing: SendQueue
  readonly #incoming: ReceiveQueue
  #wantsDrain = false
  #ending = false
  #sentEof = false
  #gotEof = false
  #endReported = false
  #sentClose = false
  #gotClose = false
  /** Whether the last event was emitted. */
  #over = false

  constructor(id: number, carrier: Carrier, window: ReceiveWindow, events: ChannelEvents) {
    this.#id = id
    this.#carrier = carrier
    this.#events = events
    this.#outgoing = new SendQueue(carrier)
    this.#incoming = new ReceiveQueue(window, this)
  }

  get unreadBytes(): number {
    return this.#incoming.bytes
  }

  // Calls of the channel's user.

  write(chunk: Buffer): boolean {
    if (this.#over || this.#ending || this.#sentClose) return true
    this.#outgoing.push(chunk)
    const { ready } = this.#carrier
    if (this.#outgoing.empty && ready) return true
    this.#wantsDrain = true
    if (!ready) this.#carrier.block(this)
    return false
  }

  end(): void {
    if (this.#over || this.#ending) return
    this.#ending = true
    this.flush()
  }

  destroy(): void {
    if (this.#over) return
    this.#finish({ lost: !this.#bothEnded }, queueMicrotask)
    this.#sendClose()
  }

  pause(): void {
    this.#incoming.pause()
  }

  resume(): void {
    if (!this.#incoming.resume()) return
    this.#incoming.deliver()
    this.#reportEnd()
    this.#giveBack()
  }

  // Calls of the connection.

  /** Sends waiting data as far as the windows and the line allow. */
  flush(): void {
    if (!this.#outgoing.remote || this.#over || this.#sentClose) return
    this.#outgoing.pump()
    if (this.#outgoing.empty && this.#ending) this.#sendEof()
    else if (!this.#outgoing.empty || this.#wantsDrain) this.#sendOn()
  }

  #sendOn(): void {
    if (!this.#carrier.ready) this.#carrier.block(this)
    else if (this.#outgoing.empty) {
      this.#wantsDrain = false
      this.#events.drained()
    }
  }

  data(chunk: Buffer): void {
    this.#events.data(chunk)
  }

  held(bytes: number): void {
    this.#carrier.held(this, bytes)
  }

  // Messages of the client.

  confirmed(remote: RemoteEnd): void {
    if (this.#outgoing.remote) return
    this.#outgoing.begin(remote)
    if (remote.maxPacket < MIN_PACKET_BYTES) this.#refuse('connect_failed')
    if (this.#over) this.#sendClose()
    else {
      this.#events.opened()
      this.flush()
    }
  }

  refused(reason: number): void {
    if (this.#outgoing.remote) return
    this.#carrier.free(this.#id)
    this.#refuse(reason === OpenFailure.prohibited ? 'prohibited' : 'connect_failed')
  }

  adjusted(bytes: number): void {
    this.#outgoing.allow(bytes)
    this.flush()
  }

  received(data: Buffer, extended: boolean): boolean {
    if (!this.#incoming.arrived(data.length)) return false
    if (this.#over || extended || this.#gotEof) return true
    if (this.#incoming.take(data)) this.#giveBack()
    return true
  }

  eof(): void {
    if (this.#gotEof) return
    this.#gotEof = true
    this.#reportEnd()
  }

  close(): void {
    if (this.#gotClose) return
    this.#gotClose = true
    if (this.#sentClose) this.#carrier.free(this.#id)
    else this.#sendClose()
    if (!this.#over) this.#events.closing?.()
    this.#closeWhenRead()
  }

  request({ wantReply }: ChannelRequest): void {
    const { remote } = this.#outgoing
    if (wantReply && remote) this.#carrier.wire.channels.channelFailure(remote.id)
  }

  lost(): void {
    if (this.#outgoing.remote) this.#finish({ lost: true })
    else this.#refuse('session_lost')
  }

  #sendEof(): void {
    const { remote } = this.#outgoing
    if (this.#sentEof || !remote) return
    this.#sentEof = true
    this.#carrier.wire.channels.channelEOF(remote.id)
    this.#finishWhenBothEnded()
  }

  #sendClose(): void {
    const { remote } = this.#outgoing
    if (this.#sentClose || !remote) return
    this.#sentClose = true
    this.#outgoing.clear()
    this.#carrier.wire.channels.channelClose(remote.id)
    if (this.#gotClose) this.#carrier.free(this.#id)
  }

  #giveBack(): void {
    if (this.#incoming.stalled) {
      this.#incoming.shrink()
      return
    }
    const { remote } = this.#outgoing
    if (this.#over || this.#gotEof || this.#sentClose || !remote) return
    const bytes = this.#incoming.grant(this.#carrier)
    if (bytes > 0) this.#carrier.wire.channels.channelWindowAdjust(remote.id, bytes)
  }

  get #bothEnded(): boolean {
    return this.#sentEof && this.#gotEof
  }

  #reportEnd(): void {
    if (!this.#incoming.empty || this.#over) return
    if (this.#gotEof && !this.#endReported) {
      this.#endReported = true
      this.#events.ended()
    }
    this.#finishWhenBothEnded()
    this.#closeWhenRead()
  }

  #finishWhenBothEnded(): void {
    if (!this.#bothEnded || !this.#incoming.empty) return
    this.#sendClose()
    this.#finish({ lost: false })
  }

  #closeWhenRead(): void {
    if (this.#gotClose && this.#incoming.empty) this.#finish({ lost: !this.#bothEnded })
  }

  #refuse(why: 'connect_failed' | 'prohibited' | 'session_lost'): void {
    if (this.#over) return
    this.#release()
    this.#events.refused(why)
  }

  #finish(how: { readonly lost: boolean }, later?: (emit: () => void) => void): void {
    if (this.#over) return
    this.#release()
    if (later) later(() => this.#events.closed(how))
    else this.#events.closed(how)
  }

  #release(): void {
    this.#over = true
    this.#outgoing.clear()
    this.#incoming.release()
  }
}
