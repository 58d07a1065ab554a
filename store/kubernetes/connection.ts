import { type ClientHttp2Session, connect, type SecureClientSessionOptions } from 'node:http2'
import { type Clock, systemClock } from '../clock.ts'

export interface ConnectionDeps {
  /** `https://host:port` */
  readonly origin: string
  readonly tls: () => Promise<SecureClientSessionOptions>
  readonly clock?: Clock
  /** Longest time for TCP, TLS and the first settings together. Default 5,000. */
  readonly connectMs?: number | undefined
  /** A ping is sent this often, and must be answered within the same time. Default 10,000. */
  readonly pingMs?: number | undefined
}

/**
 * One HTTP/2 connection to an API server, opened when it is needed and again when it broke: every request and watch is a stream of it.
 * Packets that vanish without a FIN are noticed by pings, end to end, after 2 × `pingMs` at the latest: then every stream of it fails.
 */
export interface Connection {
  /** @throws whatever connecting fails with */
  session(): Promise<ClientHttp2Session>
  /** Ends all streams. */
  close(): Promise<void>
}

/** Streams of 64 KiB (HTTP/2's default) would make a list of some MB wait for the other side again and again. */
const STREAM_WINDOW = 1 << 20
const CONNECTION_WINDOW = 1 << 24

export function createConnection(deps: ConnectionDeps): Connection {
  const { origin, tls, clock = systemClock, connectMs = 5_000, pingMs = 10_000 } = deps
  /** Those that were told to go away live on until their last stream ends. */
  const sessions = new Set<ClientHttp2Session>()
  let current: { readonly opening: Promise<ClientHttp2Session>; session?: ClientHttp2Session } | undefined
  let closed = false

  function watchOver(session: ClientHttp2Session): void {
    let disarm: () => void = () => undefined
    const ping = (): void => {
      disarm = clock.after(pingMs, () => {
        // An answer may lie in the socket of a process that was itself held up: one turn to read it.
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
    // Stays on: an error of an open session reaches its streams, and without a listener would end the process.
    session.on('error', reject)
    session.once('close', () => {
      reject(new Error('the connection was closed'))
    })
    watchOver(session)
    try {
      return await promise
    } finally {
      disarm()
    }
  }

  function session(): Promise<ClientHttp2Session> {
    if (closed) return Promise.reject(new Error('the connection is closed for good'))
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
