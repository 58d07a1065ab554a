import { connect, isIPv4, type Socket } from 'node:net'
import { isLoopback } from '../../crds/formats/address-list.ts'
import { type Channel, type ChannelEnd, type ChannelEvents, OpenFailure, type RemoteEnd } from '../channels/channel.ts'
import type { ChannelTable } from '../channels/channel-table.ts'
import { compact } from '../memory.ts'
import type { ServerAddress } from '../route.ts'
import { lasting, pauseReads, readAll } from '../reads.ts'
import { sentences } from '../ssh/sentences.ts'
import type { Wire } from '../ssh/wire/wire.ts'

/** Maximum time to connect to a database server, in milliseconds. */
const CONNECT_MS = 10_000
const KEEPALIVE_MS = 10_000

export interface ServerDialDeps {
  readonly table: ChannelTable<Wire>
  /** Number of the channel on our side. */
  readonly id: number
  readonly remote: RemoteEnd
  /** Address of the database server. */
  readonly server: ServerAddress
  /** Maximum time for the server to take the last bytes of a client that has closed its channel, in milliseconds. */
  readonly closeMs: number
  /** Called when the client sent a message about a channel that is not confirmed. */
  readonly broken: () => void
  /** Called once, when the connection to the server is over. */
  readonly ended: () => void
}

/**
 * Connection to a database server for a channel that a client has requested. The channel is confirmed when the server has accepted the
 * connection. Then bytes are passed both ways unchanged, each side ends on its own, and a side that is slow holds up the other.
 */
export class ServerDial implements ChannelEnd {
  readonly #deps: ServerDialDeps
  readonly #socket: Socket
  #channel: Channel | undefined
  /** Ends the connection of a closed channel. */
  #deadline: NodeJS.Timeout | undefined

  constructor(deps: ServerDialDeps) {
    this.#deps = deps
    const { host, port, source } = deps.server
    this.#socket = connect({
      host,
      port,
      ...(source !== undefined && isIPv4(host) && isLoopback(host) && { localAddress: source }),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEPALIVE_MS,
      allowHalfOpen: true,
    })
    this.#socket.setTimeout(CONNECT_MS, () => this.#socket.destroy())
    this.#socket.once('connect', () => this.#connected())
    // The event `close` follows.
    this.#socket.on('error', () => undefined)
    this.#socket.once('close', () => this.#closed())
  }

  #connected(): void {
    const { table, id, remote } = this.#deps
    const socket = this.#socket
    socket.setTimeout(0)
    const channel = table.establish(id, { remote, events: this.#events() }, (window, maxPacket) =>
      table.wire.channels.channelOpenConfirm(remote.id, id, window, maxPacket),
    )
    this.#channel = channel
    readAll(socket, (chunk) => {
      if (!channel.write(lasting(chunk))) pauseReads(socket)
    })
    socket.on('drain', () => channel.resume())
    socket.once('end', () => channel.end())
  }

  #events(): ChannelEvents {
    const socket = this.#socket
    return {
      opened: () => undefined,
      refused: () => this.cut(),
      data: (chunk) => {
        if (!socket.write(compact(chunk))) this.#channel?.pause()
      },
      drained: () => void socket.resume(),
      ended: () => void socket.end(),
      closing: () => this.#limit(),
      closed: ({ lost }) => (lost && !this.#deadline ? this.cut() : this.#finish()),
    }
  }

  /** Closes the connection after the last bytes of the client. */
  #finish(): void {
    this.#limit()
    this.#socket.destroySoon()
  }

  /** Ends the connection in `closeMs`, however slowly the server reads: its session may sleep for hours. */
  #limit(): void {
    if (!this.#socket.destroyed) this.#deadline ??= setTimeout(() => this.cut(), this.#deps.closeMs)
  }

  /** Ends the connection at once. The server gets none of the bytes that wait in the edge or its kernel. */
  cut(): void {
    const socket = this.#socket
    // A socket that is sending its end cannot be reset: it would never be closed.
    const isEnding = socket.writableEnded && socket.writableLength === 0 && !socket.writableFinished
    if (socket.connecting || socket.destroyed || isEnding) socket.destroy()
    else socket.resetAndDestroy()
  }

  #closed(): void {
    const { table, id, remote, ended } = this.#deps
    clearTimeout(this.#deadline)
    if (this.#channel) this.#channel.destroy()
    else if (table.free(id)) table.wire.channels.channelOpenFail(remote.id, OpenFailure.connectFailed, sentences.databaseDown)
    ended()
  }

  // Messages about this channel before it is confirmed are protocol errors: the client does not know the channel's number yet.

  confirmed(): void {
    this.#deps.broken()
  }

  refused(): void {
    this.#deps.broken()
  }

  adjusted(): void {
    this.#deps.broken()
  }

  received(): boolean {
    return false
  }

  eof(): void {
    this.#deps.broken()
  }

  close(): void {
    this.#deps.broken()
  }

  request(): void {
    this.#deps.broken()
  }

  lost(): void {
    this.cut()
  }
}
