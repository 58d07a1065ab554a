import { performance } from 'node:perf_hooks'
import type {
  Channel,
  ChannelEvents,
  Carrier,
  ChannelEnd,
  ChannelWriter,
  BufferHolder,
  Sender,
  ChannelMessages,
  ChannelRequest,
  RemoteEnd,
} from './channel.ts'
import type { Origin } from '../sessions.ts'
import { LightChannel } from './light-channel.ts'
import { LineShare, type Budget, firstWindow, ReceiveWindow } from './receive-window.ts'
import type { Output } from './output.ts'

/** Maximum bytes of a packet. Larger packets gain nothing: clients send 32 KiB. */
export const PACKET_BYTES = 32 * 1024

export interface ChannelLimits {
  /** Maximum number of channels per connection, those being opened or closed included. */
  readonly channels: number
  /** Maximum bytes received and not read, per connection. Above it the channel that holds most is closed. */
  readonly unreadBytes: number
}

interface Deps<Line> {
  readonly wire: Line
  readonly output: Output
  readonly limits: ChannelLimits
  readonly growth: Budget
  /** The client opens a channel of its own. */
  opening: ChannelMessages['opening']
  /** The client has sent more than a window allows. */
  overrun(): void
  /** The client sent data for an unknown channel. */
  broken(): void
  /** The client refused a channel: its target is unreachable or not allowed. */
  refused?(): void
}

/** Channels of one connection, by their number on our side. */
export class ChannelTable<Line extends ChannelWriter> implements Carrier, ChannelMessages {
  readonly wire: Line
  readonly #deps: Deps<Line>
  readonly share = new LineShare()
  roundTripMs = 0
  readonly #ends: (ChannelEnd | undefined)[] = []
  readonly #free: number[] = []
  #blocked = new Set<Sender>()
  #unreadBytes = 0
  #gone = false

  constructor(deps: Deps<Line>) {
    this.wire = deps.wire
    this.#deps = deps
  }

  get size(): number {
    return this.#ends.length - this.#free.length
  }

  get ready(): boolean {
    return !this.#deps.output.congested && !this.wire.exchanging
  }

  add(end: (id: number) => ChannelEnd): number {
    const id = this.#free.pop() ?? this.#ends.length
    this.#ends[id] = end(id)
    return id
  }

  /** Frees a number. Returns false when it is free already. */
  free(id: number): boolean {
    if (this.#ends[id] === undefined) return false
    this.#ends[id] = undefined
    this.#free.push(id)
    return true
  }

  /** Whether another channel is within the limit. */
  get hasRoom(): boolean {
    return !this.#gone && this.size < this.#deps.limits.channels
  }

  /**
   * Replaces the end of a number by a channel that the client has requested. `confirm` sends the confirmation, before anything else is sent
   * on the channel.
   */
  establish(
    id: number,
    { remote, events }: { readonly remote: RemoteEnd; readonly events: ChannelEvents },
    confirm: (window: number, maxPacket: number) => void,
  ): Channel {
    const window = firstWindow(this.size, this.#deps.limits.unreadBytes)
    const channel = new LightChannel(id, this, new ReceiveWindow(window, this.#deps.growth, performance.now()), events)
    this.#ends[id] = channel
    confirm(window, PACKET_BYTES)
    channel.confirmed(remote)
    return channel
  }

  /** Opens a channel to the client's target. `bound` is the forward as the client requested it: clients accept no other spelling. */
  open(bound: { readonly host: string; readonly port: number }, origin: Origin, events: ChannelEvents): Channel {
    if (this.#gone) return refusedChannel(events, 'session_lost')
    if (!this.hasRoom) return refusedChannel(events, 'prohibited')
    const window = firstWindow(this.size, this.#deps.limits.unreadBytes)
    const opened: LightChannel[] = []
    const id = this.add((number) => {
      const channel = new LightChannel(number, this, new ReceiveWindow(window, this.#deps.growth, performance.now()), events)
      opened.push(channel)
      return channel
    })
    this.wire.channels.forwardedTcpip(id, window, PACKET_BYTES, {
      boundAddr: bound.host,
      boundPort: bound.port,
      remoteAddr: origin.address,
      remotePort: origin.port,
    })
    return opened[0] ?? refusedChannel(events, 'session_lost')
  }

  block(sender: Sender): void {
    this.#blocked.add(sender)
  }

  /** Flushes waiting channels after the line has room again. Channels take turns: one that gets nothing now is first the next time. */
  unblock(): void {
    const waiting = this.#blocked
    this.#blocked = new Set()
    for (const sender of waiting) {
      if (this.ready) sender.flush()
      else this.#blocked.add(sender)
    }
  }

  held(channel: BufferHolder, bytes: number): void {
    this.#unreadBytes += bytes
    if (bytes <= 0 || this.#unreadBytes <= this.#deps.limits.unreadBytes) return
    const worst = this.#ends
      .filter((end) => end instanceof LightChannel)
      .reduce<BufferHolder>((most, end) => (end.unreadBytes > most.unreadBytes ? end : most), channel)
    worst.destroy()
  }

  // Messages of the client.

  opening(...about: Parameters<ChannelMessages['opening']>): void {
    this.#deps.opening(...about)
  }

  confirmed(id: number, remote: RemoteEnd): void {
    this.#ends[id]?.confirmed(remote)
  }

  refused(id: number, reason: number): void {
    const end = this.#ends[id]
    if (end === undefined) return
    end.refused(reason)
    this.#deps.refused?.()
  }

  /** Ends a channel whose target session has ended. */
  lost(id: number): void {
    const end = this.#ends[id]
    this.free(id)
    end?.lost()
  }

  window(id: number, bytes: number): void {
    this.#ends[id]?.adjusted(bytes)
  }

  data(id: number, data: Buffer, extended: boolean): void {
    const end = this.#ends[id]
    if (end === undefined) this.#deps.broken()
    else if (!end.received(data, extended)) this.#deps.overrun()
  }

  ended(id: number): void {
    this.#ends[id]?.eof()
  }

  closed(id: number): void {
    this.#ends[id]?.close()
  }

  request(id: number, request: ChannelRequest): void {
    this.#ends[id]?.request(request)
  }

  /** Ends all channels after the connection has ended. */
  close(): void {
    if (this.#gone) return
    this.#gone = true
    this.#blocked.clear()
    for (const end of this.#ends.splice(0)) end?.lost()
    this.#free.length = 0
  }
}

/** Returns a channel that is refused at once. */
export function refusedChannel(events: ChannelEvents, why: 'connect_failed' | 'prohibited' | 'session_lost'): Channel {
  queueMicrotask(() => events.refused(why))
  return { write: () => true, end: () => undefined, destroy: () => undefined, pause: () => undefined, resume: () => undefined }
}
