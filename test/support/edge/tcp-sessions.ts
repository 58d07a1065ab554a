import { connect, type Socket } from 'node:net'
import { randomUUIDv7 } from 'node:crypto'
import type { Channel, ChannelEvents } from '../../../edge/channels/channel.ts'
import { type Origin, type Session, type Sessions, createSessions } from '../../../edge/sessions.ts'

/** Sessions whose channels are TCP connections to a backend on this machine: sessions of an edge without SSH. */
export interface TcpSessions extends Sessions {
  /** Connects a client that forwards to this port. */
  connect(hostname: string, port: number): Session
  /** Number of channels opened so far. */
  readonly opened: number
  /** Number of requests that wait for a client. */
  readonly waiting: number
}

/** Opens a channel over a TCP connection, with back-pressure in both directions. */
function openChannel(port: number, events: ChannelEvents, live: Set<Socket>): Channel {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  let isOpen = false
  let isWaiting = false
  live.add(socket)
  socket.on('connect', () => {
    isOpen = true
    events.opened()
    if (isWaiting && !socket.writableNeedDrain) events.drained()
  })
  socket.on('data', (chunk) => events.data(chunk))
  socket.on('drain', () => events.drained())
  socket.on('end', () => events.ended())
  // 'close' follows.
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    live.delete(socket)
    if (isOpen) events.closed({ lost: !(socket.readableEnded && socket.writableFinished) })
    else events.refused('connect_failed')
  })
  return {
    write(chunk) {
      const more = !socket.destroyed && socket.write(chunk)
      isWaiting ||= !isOpen
      return more && isOpen
    },
    end: () => socket.end(),
    destroy: () => socket.destroy(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  }
}

export function createTcpSessions(): TcpSessions {
  const sessions = createSessions()
  let opened = 0
  let waiting = 0

  return {
    ...sessions,
    connect(hostname, port) {
      const live = new Set<Socket>()
      const login = { authMethod: 'token', passwordId: randomUUIDv7() } as const
      const session: Session = {
        id: randomUUIDv7(),
        hostname,
        clientIp: '127.0.0.1',
        login,
        since: 0,
        get channels() {
          return live.size
        },
        open(_origin: Origin, events: ChannelEvents) {
          opened++
          return openChannel(port, events, live)
        },
        notify: () => undefined,
        close() {
          sessions.remove(session)
          for (const socket of live) socket.destroy()
        },
      }
      const others = sessions.of(hostname)
      sessions.add(session)
      // Simulated clients are always alive.
      for (const other of others) sessions.confirm(other)
      return session
    },
    get opened() {
      return opened
    },
    get waiting() {
      return waiting
    },
    async waitFor(hostname, ms, signal) {
      waiting++
      try {
        return await sessions.waitFor(hostname, ms, signal)
      } finally {
        waiting--
      }
    },
    get count() {
      return sessions.count
    },
  }
}
