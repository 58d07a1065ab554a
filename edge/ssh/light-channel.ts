import type { Channel, ChannelEvents } from '../channel.ts'
import { type ChannelRequest, OpenFailure, type Wire } from './protocol.ts'
import type { ReceiveWindow } from './receive-window.ts'

/** What a channel needs of its connection. */
export interface Carrier {
  readonly wire: Wire
  /** False while the client's line is full or keys are being exchanged: what is written then waits in its channel. */
  readonly ready: boolean
  readonly roundTripMs: number
  /** Has {@link LightChannel.flush} called when `ready` is true again. */
  block(channel: LightChannel): void
  /** Received bytes that nobody has read: more, or (negative) less. */
  held(channel: LightChannel, bytes: number): void
  /** Nothing more comes on the channel: its number may be used again. */
  free(id: number): void
}

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

export interface RemoteEnd {
  readonly id: number
  readonly window: number
  readonly maxPacket: number
}

/** Some more than OpenSSH's default packet would not help: clients say 32 KiB. */
const MAX_PACKET_BYTES = 32 * 1024
const MAX_REMOTE_WINDOW = 0xffff_ffff

/** A forwarded connection without a stream object: its own windows, and callbacks. Some 1 KB each when idle. */
export class LightChannel implements Channel, ChannelEnd {
  readonly #id: number
  readonly #carrier: Carrier
  readonly #events: ChannelEvents
  readonly #window: ReceiveWindow
  #remote: RemoteEnd | undefined
  #remoteWindow = 0
  #unsent: Buffer[] = []
  #unread: Buffer[] = []
  #unreadBytes = 0
  #paused = false
  #delivering = false
  #wantsDrain = false
  #ending = false
  #sentEof = false
  #gotEof = false
  #endedTold = false
  #sentClose = false
  #gotClose = false
  /** Its user has had its last call. */
  #over = false

  constructor(id: number, carrier: Carrier, window: ReceiveWindow, events: ChannelEvents) {
    this.#id = id
    this.#carrier = carrier
    this.#window = window
    this.#events = events
  }

  get unreadBytes(): number {
    return this.#unreadBytes
  }

  // What its user calls.

  write(chunk: Buffer): boolean {
    if (this.#over || this.#ending || this.#sentClose) return true
    if (this.#unsent.length > 0 || !this.#remote || !this.#carrier.ready) this.#unsent.push(chunk)
    else this.#send(chunk)
    if (this.#unsent.length === 0 && this.#carrier.ready) return true
    this.#wantsDrain = true
    if (!this.#carrier.ready) this.#carrier.block(this)
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
    this.#paused = true
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#deliver()
    this.#giveBack()
  }

  /** Sends what waits, as far as the windows and the line allow. */
  flush(): void {
    if (!this.#remote || this.#over || this.#sentClose) return
    this.#sendUnsent()
    if (this.#unsent.length > 0) this.#blockIfLineIsFull()
    else if (this.#ending) this.#sendEof()
    else if (this.#wantsDrain) this.#tellDrained()
  }

  #sendUnsent(): void {
    while (this.#unsent.length > 0 && this.#remoteWindow > 0 && this.#carrier.ready) {
      const chunk = this.#unsent.shift()
      if (chunk) this.#send(chunk)
    }
  }

  #blockIfLineIsFull(): void {
    if (!this.#carrier.ready) this.#carrier.block(this)
  }

  #tellDrained(): void {
    if (!this.#carrier.ready) {
      this.#carrier.block(this)
      return
    }
    this.#wantsDrain = false
    this.#events.drained()
  }

  /** Sends as much as the client has room for; the rest waits, before all else. */
  #send(chunk: Buffer): void {
    const remote = this.#remote
    if (!remote) return
    const most = Math.min(remote.maxPacket, MAX_PACKET_BYTES)
    let at = 0
    while (at < chunk.length && this.#remoteWindow > 0) {
      const size = Math.min(chunk.length - at, this.#remoteWindow, most)
      this.#carrier.wire.channels.channelData(remote.id, size === chunk.length ? chunk : chunk.subarray(at, at + size))
      this.#remoteWindow -= size
      at += size
    }
    if (at < chunk.length) this.#unsent.unshift(chunk.subarray(at))
  }

  #sendEof(): void {
    if (this.#sentEof || !this.#remote) return
    this.#sentEof = true
    this.#carrier.wire.channels.channelEOF(this.#remote.id)
    this.#finishWhenBothEnded()
  }

  #sendClose(): void {
    if (this.#sentClose || !this.#remote) return
    this.#sentClose = true
    this.#unsent = []
    this.#carrier.wire.channels.channelClose(this.#remote.id)
    if (this.#gotClose) this.#carrier.free(this.#id)
  }

  // What its client says.

  confirmed(remote: RemoteEnd): void {
    if (this.#remote) return
    this.#remote = { ...remote, maxPacket: Math.max(1, remote.maxPacket) }
    this.#remoteWindow = remote.window
    if (this.#over) this.#sendClose()
    else {
      this.#events.opened()
      this.flush()
    }
  }

  refused(reason: number): void {
    if (this.#remote) return
    this.#carrier.free(this.#id)
    this.#refuse(reason === OpenFailure.prohibited ? 'prohibited' : 'connect_failed')
  }

  adjusted(bytes: number): void {
    this.#remoteWindow = Math.min(this.#remoteWindow + bytes, MAX_REMOTE_WINDOW)
    this.flush()
  }

  received(data: Buffer, extended: boolean): boolean {
    if (!this.#window.arrived(data.length)) return false
    if (this.#over || extended || this.#gotEof) return true
    if (this.#paused || this.#unread.length > 0) this.#keep(data)
    else {
      this.#delivering = true
      this.#events.data(data)
      this.#delivering = false
      this.#window.read(data.length)
      if (this.#unread.length > 0) this.#deliver()
      this.#giveBack()
    }
    return true
  }

  eof(): void {
    if (this.#gotEof) return
    this.#gotEof = true
    this.#tellEnded()
  }

  close(): void {
    if (this.#gotClose) return
    this.#gotClose = true
    if (this.#sentClose) this.#carrier.free(this.#id)
    else this.#sendClose()
    this.#closeWhenRead()
  }

  request({ wantReply }: ChannelRequest): void {
    if (wantReply && this.#remote) this.#carrier.wire.channels.channelFailure(this.#remote.id)
  }

  lost(): void {
    if (this.#remote) this.#finish({ lost: true })
    else this.#refuse('session_lost')
  }

  #keep(data: Buffer): void {
    this.#unread.push(data)
    this.#unreadBytes += data.length
    this.#carrier.held(this, data.length)
  }

  #deliver(): void {
    if (this.#delivering) return
    this.#delivering = true
    while (this.#unread.length > 0 && !this.#paused && !this.#over) {
      const data = this.#unread.shift() ?? Buffer.alloc(0)
      this.#unreadBytes -= data.length
      this.#carrier.held(this, -data.length)
      this.#window.read(data.length)
      this.#events.data(data)
    }
    this.#delivering = false
    this.#tellEnded()
  }

  #giveBack(): void {
    if (this.#paused || this.#unread.length > 0) {
      this.#window.shrink()
      return
    }
    if (this.#over || this.#gotEof || this.#sentClose || !this.#remote) return
    const bytes = this.#window.grant(performance.now(), this.#carrier.roundTripMs)
    if (bytes > 0) this.#carrier.wire.channels.channelWindowAdjust(this.#remote.id, bytes)
  }

  get #bothEnded(): boolean {
    return this.#sentEof && this.#gotEof
  }

  #tellEnded(): void {
    if (this.#unread.length > 0 || this.#over) return
    if (this.#gotEof && !this.#endedTold) {
      this.#endedTold = true
      this.#events.ended()
    }
    this.#finishWhenBothEnded()
    this.#closeWhenRead()
  }

  #finishWhenBothEnded(): void {
    if (!this.#bothEnded || this.#unread.length > 0) return
    this.#sendClose()
    this.#finish({ lost: false })
  }

  #closeWhenRead(): void {
    if (this.#gotClose && this.#unread.length === 0) this.#finish({ lost: !this.#bothEnded })
  }

  #refuse(why: 'connect_failed' | 'prohibited' | 'session_lost'): void {
    if (this.#over) return
    this.#letGo()
    this.#events.refused(why)
  }

  #finish(how: { readonly lost: boolean }, later?: (tell: () => void) => void): void {
    if (this.#over) return
    this.#letGo()
    if (later) later(() => this.#events.closed(how))
    else this.#events.closed(how)
  }

  #letGo(): void {
    this.#over = true
    this.#unsent = []
    this.#unread = []
    this.#carrier.held(this, -this.#unreadBytes)
    this.#unreadBytes = 0
    this.#window.release()
  }
}
