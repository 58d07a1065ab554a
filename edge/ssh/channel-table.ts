import type { Channel, ChannelEvents } from '../channel.ts'
import type { Origin } from '../session.ts'
import { type Carrier, type ChannelEnd, LightChannel } from './light-channel.ts'
import type { Output } from './output.ts'
import type { Wire } from './protocol.ts'
import { type Budget, firstWindow, ReceiveWindow } from './receive-window.ts'

/** Larger packets are no gain: clients send 32 KiB. */
export const PACKET_BYTES = 32 * 1024

export interface ChannelLimits {
  /** Open or being opened or closed, per connection. */
  readonly channels: number
  /** Received and not read, per connection; beyond it the channel that holds most is closed. */
  readonly unreadBytes: number
}

interface Deps {
  readonly wire: Wire
  readonly output: Output
  readonly limits: ChannelLimits
  readonly growth: Budget
}

/** The channels of one connection, by their number on our side. */
export class ChannelTable implements Carrier {
  readonly wire: Wire
  roundTripMs = 0
  readonly #output: Output
  readonly #limits: ChannelLimits
  readonly #growth: Budget
  readonly #ends: (ChannelEnd | undefined)[] = []
  readonly #free: number[] = []
  #blocked = new Set<LightChannel>()
  #unreadBytes = 0
  #gone = false

  constructor({ wire, output, limits, growth }: Deps) {
    this.wire = wire
    this.#output = output
    this.#limits = limits
    this.#growth = growth
  }

  get size(): number {
    return this.#ends.length - this.#free.length
  }

  get ready(): boolean {
    return !this.#output.congested && !this.wire.exchanging
  }

  at(id: number): ChannelEnd | undefined {
    return this.#ends[id]
  }

  add(end: (id: number) => ChannelEnd): number {
    const id = this.#free.pop() ?? this.#ends.length
    this.#ends[id] = end(id)
    return id
  }

  free(id: number): void {
    if (this.#ends[id] === undefined) return
    this.#ends[id] = undefined
    this.#free.push(id)
  }

  /** Opens one to the client's target. `bound` is the forward as the client asked for it: it takes no other spelling. */
  open(bound: { readonly host: string; readonly port: number }, origin: Origin, events: ChannelEvents): Channel {
    if (this.#gone) return refusedChannel(events, 'session_lost')
    if (this.size >= this.#limits.channels) return refusedChannel(events, 'prohibited')
    const window = firstWindow(this.size, this.#limits.unreadBytes)
    const opened: LightChannel[] = []
    const id = this.add((number) => {
      const channel = new LightChannel(number, this, new ReceiveWindow(window, this.#growth, performance.now()), events)
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

  block(channel: LightChannel): void {
    this.#blocked.add(channel)
  }

  /** The line has room again. Those who wait take turns: who gets nothing now is first the next time. */
  unblock(): void {
    const waiting = this.#blocked
    this.#blocked = new Set()
    for (const channel of waiting) {
      if (this.ready) channel.flush()
      else this.#blocked.add(channel)
    }
  }

  held(channel: LightChannel, bytes: number): void {
    this.#unreadBytes += bytes
    if (bytes <= 0 || this.#unreadBytes <= this.#limits.unreadBytes) return
    const worst = this.#ends
      .filter((end) => end instanceof LightChannel)
      .reduce((most, end) => (end.unreadBytes > most.unreadBytes ? end : most), channel)
    worst.destroy()
  }

  /** The connection is gone, and so are all of them. */
  close(): void {
    if (this.#gone) return
    this.#gone = true
    this.#blocked.clear()
    for (const end of this.#ends.splice(0)) end?.lost()
    this.#free.length = 0
  }
}

/** For a channel that never comes to be. */
export function refusedChannel(events: ChannelEvents, why: 'connect_failed' | 'prohibited' | 'session_lost'): Channel {
  let told = false
  const tell = (call: () => void) => {
    if (told) return
    told = true
    queueMicrotask(call)
  }
  tell(() => events.refused(why))
  return { write: () => true, end: () => undefined, destroy: () => undefined, pause: () => undefined, resume: () => undefined }
}
