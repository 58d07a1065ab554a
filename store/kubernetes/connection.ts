import { type ClientHttp2Session, connect, type SecureClientSessionOptions } from 'node:http2'
import { type Clock, systemClock } from '../../shared/timers.ts'

export interface ConnectionDeps {
  /** Origin of the API server: `https://host:port`. */
  readonly origin: string
  readonly tls: () => Promise<SecureClientSessionOptions>
  readonly clock?: Clock
  /** Timeout for TCP, TLS and the first SETTINGS frame together, in milliseconds. Default 5,000. */
  readonly connectMs?: number | undefined
  /** Interval of pings, and timeout of each, in milliseconds. Default 10,000. */
  readonly pingMs?: number | undefined
}

/**
 * HTTP/2 connection to an API server, opened on demand and reopened after it broke. Every request and watch is a stream of it.
 * Pings detect a connection that is lost without a FIN after at most 2 × `pingMs`; then all its streams fail.
 */
export interface Connection {
  /** Returns the open session, or opens one. @throws the error of the connection attempt */
  session(): Promise<ClientHttp2Session>
  /** Closes the connection and all its streams. */
  close(): Promise<void>
}

/** Receive windows in bytes. With HTTP/2's default of 64 KiB, a list of several MB would need many round trips. */
const STREAM_WINDOW = 1 << 20
const CONNECTION_WINDOW = 1 << 24

export function createConnection(deps: ConnectionDeps): Connection {
  const { origin, tls, clock = systemClock, connectMs = 5_000, pingMs = 10_000 } = deps
  /** Open sessions. A session that received GOAWAY stays open until its last stream ends. */
  const sessions = new Set<ClientHttp2Session>()
  let current: { readonly opening: Promise<ClientHttp2Session>; session?: ClientHttp2Session } | undefined
  let closed = false

  function keepAlive(session: ClientHttp2Session): void {
    let disarm: () => void = () => undefined
    const ping = (): void => {
      disarm = clock.after(pingMs, () => {
        // When this process was blocked, the response may be waiting in the socket: allow one turn to read it.
        setImmediate(() => {
          if (answered) return
          session.destroy(new Error('the API server does not answer pings'))
        })
      })
      let answered = false
      const onAnswer = (error: Error | null): void => {
        if (error) return
        answered = true
        disarm()
        disarm = clock.after(pingMs, ping)
      }
      if (!session.destroyed) session.ping(onAnswer)
    }
    disarm = clock.after(pingMs, ping)
    session.once('close', () => {
      disarm()
      sessions.delete(session)
    })
  }

  async function open(): Promise<ClientHttp2Session> {
    const settings = { enablePush: false, initialWindowSize: STREAM_WINDOW }
    const session = connect(origin, { ...(await tls()), settings })
    sessions.add(session)
    const { promise, resolve, reject } = Promise.withResolvers<ClientHttp2Session>()
    const disarm = clock.after(connectMs, () => {
      session.destroy(new Error(`no connection within ${connectMs} ms`))
    })
    session.once('remoteSettings', () => {
      session.setLocalWindowSize(CONNECTION_WINDOW)
      resolve(session)
    })
    // Stays registered: errors of an open session reach its streams, but without a listener they would end the process.
    session.on('error', reject)
    session.once('close', () => {
      reject(new Error('the connection was closed'))
    })
    keepAlive(session)
    try {
      return await promise
    } finally {
      disarm()
    }
  }

  function session(): Promise<ClientHttp2Session> {
    if (closed) return Promise.reject(new Error('the client is closed'))
    const { session: known } = current ?? {}
    if (!current || known?.closed || known?.destroyed) {
      const mine: NonNullable<typeof current> = { opening: open() }
      current = mine
      mine.opening.then(
        (opened) => {
          mine.session = opened
        },
        () => {
          if (current === mine) current = undefined
        },
      )
    }
    return current.opening
  }

  return {
    session,
    async close() {
      closed = true
      await current?.opening.catch(() => undefined)
      for (const each of sessions) each.destroy()
    },
  }
}
