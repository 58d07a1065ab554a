import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { type Channel, type ChannelEvents, type ChannelWriter, OpenFailure } from '../channels/channel.ts'
import { inBlock, readAll } from '../reads.ts'
import type { Origin, Session } from '../sessions.ts'
import { ChannelTable, PACKET_BYTES } from '../channels/channel-table.ts'
import { LightChannel } from '../channels/light-channel.ts'
import { Output } from '../channels/output.ts'
import { type Budget, firstWindow, ReceiveWindow } from '../channels/receive-window.ts'
import { Bridge } from './bridge.ts'
import { Frame, frame, FrameError, FrameParser, type FrameReader, Refused } from './frames.ts'
import type { MeshLimits } from './limits.ts'
import {
  createFrameWriter,
  encodeMessage,
  encodeNotice,
  type Hello,
  type Open,
  parseHello,
  parseNotice,
  parseOpen,
  parseSessionChanges,
  type SessionChanges,
} from './messages.ts'

/** Reasons for the end of a link. */
export type LinkEnd = 'closed' | 'lost' | 'silent' | 'protocol' | 'unknown_peer' | 'duplicate'

/** Owner of links: receives their events and resolves sessions. */
export interface LinkOwner {
  /** Returns a local session. */
  sessionOf(id: string): Session | undefined
  /** The peer has identified itself. */
  greeted(link: MeshLink, peer: Hello): void
  changed(link: MeshLink, changes: SessionChanges): void
  /** The link has room to send more. */
  drained(link: MeshLink): void
  failed(error: unknown): void
  ended(link: MeshLink, why: LinkEnd): void
}

export interface LinkDeps {
  readonly self: Hello
  readonly limits: MeshLimits
  readonly growth: Budget
  readonly owner: LinkOwner
}

const WHY = { connect_failed: Refused.connectFailed, prohibited: Refused.prohibited, session_lost: Refused.sessionLost } as const
type Handlers = Readonly<Record<Frame, (channel: number, payload: Buffer) => void>>

/** Link: one connection to another edge, which carries session changes and channels both ways. */
export class MeshLink implements FrameReader {
  readonly dialled: boolean
  readonly #deps: LinkDeps
  readonly #socket: Socket
  readonly #output: Output
  readonly #parser: FrameParser
  readonly #channels: ChannelTable<ChannelWriter>
  readonly #handlers: Handlers
  readonly #began = performance.now()
  #peer: Hello | undefined
  #heardAt = this.#began
  #pingAt = -Infinity
  #unanswered = 0
  #end: LinkEnd | undefined

  constructor(socket: Socket, dialled: boolean, deps: LinkDeps) {
    this.dialled = dialled
    this.#deps = deps
    this.#socket = socket
    this.#output = new Output(socket)
    this.#parser = new FrameParser(this)
    this.#channels = new ChannelTable<ChannelWriter>({
      wire: createFrameWriter((bytes) => this.#output.write(bytes)),
      output: this.#output,
      limits: deps.limits,
      growth: deps.growth,
      opening: () => undefined,
      overrun: () => this.close('protocol'),
      broken: () => this.close('protocol'),
    })
    this.#handlers = this.#createHandlers()
    readAll(socket, (chunk) => this.#receive(inBlock(chunk)))
    socket.on('drain', () => this.#drained())
    for (const event of ['end', 'error', 'close'] as const) socket.on(event, () => this.close('lost'))
    this.#output.write(frame(Frame.hello, 0, encodeMessage(deps.self)))
  }

  get peer(): Hello | undefined {
    return this.#peer
  }

  /** Reason for the end; undefined while the link lives. */
  get end(): LinkEnd | undefined {
    return this.#end
  }

  /** Whether too many bytes wait for the peer. */
  get congested(): boolean {
    return this.#output.congested
  }

  get channels(): number {
    return this.#channels.size
  }

  sendChanges(changes: SessionChanges): void {
    if (this.#end === undefined) this.#output.write(frame(Frame.sessions, 0, encodeMessage(changes)))
  }

  /** Opens a channel to a session of the peer. */
  open(session: string, origin: Origin, events: ChannelEvents): Channel {
    return this.#channels.open({ host: session, port: 0 }, origin, events)
  }

  /** Shows a line on the terminal of a peer's session. Dropped while too many bytes wait for the peer. */
  notify(session: string, line: string): void {
    if (this.#end === undefined && !this.congested) this.#output.write(frame(Frame.notice, 0, encodeNotice({ session, line })))
  }

  /** Ends the link with all its channels. Idempotent. */
  close(why: LinkEnd): void {
    if (this.#end !== undefined) return
    this.#end = why
    // The sessions end first: a request that loses its channel selects another session at once.
    this.#deps.owner.ended(this, why)
    this.#channels.close()
    this.#output.flush()
    if (why === 'closed') this.#socket.destroySoon()
    else this.#socket.destroy()
  }

  /** Ends a silent link and sends pings. `stalledMs`: time in which this process did not run. */
  tick(now: number, stalledMs: number): void {
    const { silentMs, helloMs, pingMs } = this.#deps.limits
    this.#heardAt += stalledMs
    if (!this.#peer && now - this.#began > helloMs) this.close('unknown_peer')
    else if (now - this.#heardAt > silentMs) this.close('silent')
    else if (now - this.#pingAt > pingMs) this.#ping(now)
  }

  control(type: Frame, channel: number, payload: Buffer): void {
    if (this.#end !== undefined) return
    if (!this.#peer && type !== Frame.hello) throw new FrameError('the first frame is not a hello')
    this.#handlers[type](channel, payload)
  }

  data(channel: number, part: Buffer): void {
    if (this.#end === undefined) this.#channels.data(channel, part, false)
  }

  #receive(chunk: Buffer): void {
    this.#heardAt = performance.now()
    if (this.#end !== undefined) return
    try {
      this.#parser.push(chunk)
    } catch (error) {
      this.#deps.owner.failed(error)
      this.close('protocol')
    }
  }

  #drained(): void {
    this.#channels.unblock()
    if (this.#end === undefined) this.#deps.owner.drained(this)
  }

  #createHandlers(): Handlers {
    const channels = this.#channels
    return {
      [Frame.hello]: (_channel, payload) => this.#greet(parseHello(payload)),
      [Frame.sessions]: (_channel, payload) => this.#deps.owner.changed(this, parseSessionChanges(payload)),
      [Frame.ping]: () => this.#output.write(frame(Frame.pong, 0)),
      [Frame.pong]: () => this.#measure(),
      [Frame.notice]: (_channel, payload) => {
        const { session, line } = parseNotice(payload)
        this.#deps.owner.sessionOf(session)?.notify(line)
      },
      [Frame.open]: (channel, payload) => this.#bridge(channel, parseOpen(payload)),
      [Frame.opened]: (channel, payload) =>
        channels.confirmed(channel, { id: payload.readUInt32BE(0), window: payload.readUInt32BE(4), maxPacket: PACKET_BYTES }),
      [Frame.refused]: (channel, payload) => this.#refused(channel, payload.readUInt8(0)),
      [Frame.window]: (channel, payload) => channels.window(channel, payload.readUInt32BE(0)),
      // Data frames are handled in `data`.
      [Frame.data]: () => undefined,
      [Frame.end]: (channel) => channels.ended(channel),
      [Frame.close]: (channel) => channels.closed(channel),
    }
  }

  #greet(peer: Hello): void {
    if (this.#peer) throw new FrameError('unexpected second hello')
    this.#peer = peer
    if (peer.endpoint === this.#deps.self.endpoint) this.#deps.owner.greeted(this, peer)
    else this.close('unknown_peer')
  }

  #ping(now: number): void {
    this.#pingAt = now
    this.#unanswered += 1
    this.#output.write(frame(Frame.ping, 0))
  }

  /**
   * Records the shortest round trip, because a full line answers late. With several pings unanswered, a pong cannot be matched to its
   * ping.
   */
  #measure(): void {
    if (this.#unanswered === 1) {
      const ms = performance.now() - this.#pingAt
      this.#channels.roundTripMs = this.#channels.roundTripMs === 0 ? ms : Math.min(ms, this.#channels.roundTripMs)
    }
    this.#unanswered = Math.max(0, this.#unanswered - 1)
  }

  #refused(channel: number, why: number): void {
    if (why === Refused.sessionLost) this.#channels.lost(channel)
    else this.#channels.refused(channel, why === Refused.prohibited ? OpenFailure.prohibited : OpenFailure.connectFailed)
  }

  /** Opens a channel to a local session for a visitor of the peer. */
  #bridge(remote: number, { window, origin, session: id }: Open): void {
    const { owner, limits, growth } = this.#deps
    const refuse = (why: keyof typeof WHY) => this.#output.write(frame(Frame.refused, remote, Buffer.from([WHY[why]])))
    const session = owner.sessionOf(id)
    if (!session) return refuse('session_lost')
    const table = this.#channels
    if (table.size >= limits.channels) return refuse('prohibited')
    const own = firstWindow(table.size, limits.unreadBytes)
    table.add((number) => {
      const bridge = new Bridge(
        { session, origin },
        {
          opened: () => {
            this.#confirm(remote, number, own)
            table.confirmed(number, { id: remote, window, maxPacket: PACKET_BYTES })
          },
          refused: (why) => {
            table.free(number)
            if (this.#end === undefined) refuse(why)
          },
        },
      )
      const far = new LightChannel(number, table, new ReceiveWindow(own, growth, performance.now()), bridge.farEvents)
      bridge.attach(far)
      return far
    })
  }

  #confirm(remote: number, number: number, window: number): void {
    const payload = Buffer.allocUnsafe(8)
    payload.writeUInt32BE(number, 0)
    payload.writeUInt32BE(window, 4)
    this.#output.write(frame(Frame.opened, remote, payload))
  }
}
