import { connect, type Socket } from 'node:net'
import { randomUUIDv7 } from 'node:crypto'
import type { Channel, ChannelEvents } from '../../../edge/channels/channel.ts'
import type { Origin, Session, Sessions } from '../../../edge/session.ts'

/** Sessions whose channels are TCP connections to a backend on this machine: what an SSH session does, without SSH. */
export interface TcpSessions extends Sessions {
  /** A client connects that forwards to this port. */
  connect(hostname: string, port: number): Session
  /** Channels that were ever opened. */
  readonly opened: number
  /** Requests that wait for a client. */
  readonly waiting: number
}

/** A channel over a TCP connection, with back-pressure both ways. */
function openChannel(port: number, events: ChannelEvents, live: Set<Socket>): Channel {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  let isOpen = false
  live.add(socket)
  socket.on('connect', () => {
    isOpen = true
    events.opened()
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
    write: (chunk) => !socket.destroyed && socket.write(chunk),
    end: () => socket.end(),
    destroy: () => socket.destroy(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  }
}

export function createTcpSessions(): TcpSessions {
  const all = new Map<string, Session[]>()
  const waiters = new Set<{ readonly hostname: string; found(session: Session): void }>()
  let opened = 0

  const sessions: TcpSessions = {
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
      sessions.add(session)
      return session
    },
    get opened() {
      return opened
    },
    get waiting() {
      return waiters.size
    },
    add(session) {
      all.set(session.hostname, [session, ...sessions.of(session.hostname)])
      for (const waiter of waiters) if (waiter.hostname === session.hostname) waiter.found(session)
    },
    remove: (session) =>
      void all.set(
        session.hostname,
        sessions.of(session.hostname).filter((other) => other !== session),
      ),
    pick: (hostname) => all.get(hostname)?.[0],
    of: (hostname) => all.get(hostname) ?? [],
    waitFor: (hostname, ms, signal) =>
      new Promise((resolve) => {
        const settle = (session: Session | undefined) => {
          waiters.delete(waiter)
          clearTimeout(timer)
          resolve(session)
        }
        const waiter = { hostname, found: settle }
        const timer = setTimeout(settle, ms, undefined)
        signal.addEventListener('abort', () => settle(undefined))
        waiters.add(waiter)
      }),
    get count() {
      return [...all.values()].flat().length
    },
  }
  return sessions
}
