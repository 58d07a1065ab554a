import pg from 'pg'
import type { AdminTarget } from '../engine.ts'

interface Message {
  readonly data: string
}

/** Members of the driver's Connection (the wire protocol over TCP or TLS) that its types omit. */
interface Driver extends pg.Connection {
  connect(port: number, host: string): void
  requestSsl(): void
  startup(parameters: Readonly<Record<string, string>>): void
  sendSASLInitialResponseMessage(mechanism: string, message: string): void
  sendSCRAMClientFinalMessage(message: string): void
}

/** Connection to a server for a login message by message (PostgreSQL documentation, "Message Flow"). */
export interface Wire {
  /**
   * Resolves when the connection is ready for the login: after the TLS handshake, when the target has a CA.
   * @throws errors of the driver; an Error on timeout
   */
  readonly dialled: Promise<undefined>
  readonly send: Pick<Driver, 'sendSASLInitialResponseMessage' | 'sendSCRAMClientFinalMessage'>
  /**
   * Requests a session with `parameters` and answers the server's messages with `steps`, until the server is ready for queries.
   * @throws errors of the server or of a step; an Error when the connection ends or on timeout
   */
  converse(parameters: Readonly<Record<string, string>>, steps: Readonly<Record<string, Step>>): Promise<undefined>
  /** Resolves when the connection has ended. Never rejects. */
  readonly ended: Promise<undefined>
  close(): void
}

type Step = (message: Message) => unknown

/** Connects to a server. Closes the connection after `timeoutMs`, which bounds the whole login. */
export function dial({ host, port, ca }: AdminTarget, timeoutMs: number): Wire {
  const driver = new pg.Connection({ ssl: ca === undefined ? false : { ca } }) as Driver
  const dialled = Promise.withResolvers<undefined>()
  const ready = Promise.withResolvers<undefined>()
  const ended = Promise.withResolvers<undefined>()
  // A failure rejects both promises, but the caller may await only one of them.
  for (const { promise } of [dialled, ready]) promise.catch(() => undefined)

  function settle(error: unknown): void {
    dialled.reject(error)
    ready.reject(error)
    clearTimeout(timer)
    ended.resolve(undefined)
  }

  function fail(error: unknown): void {
    settle(error)
    driver.stream.destroy()
  }

  const timer = setTimeout(() => fail(new Error('the server does not answer')), timeoutMs)
  driver.on('connect', () => (ca === undefined ? dialled.resolve(undefined) : driver.requestSsl()))
  driver.on('sslconnect', () => dialled.resolve(undefined))
  driver.on('readyForQuery', () => ready.resolve(undefined))
  driver.on('errorMessage', fail)
  driver.on('error', fail)
  driver.on('end', () => fail(new Error('the server ended the connection')))
  driver.connect(port, host)

  return {
    dialled: dialled.promise,
    send: driver,
    ended: ended.promise,
    converse(parameters, steps) {
      for (const [event, act] of Object.entries(steps)) {
        driver.on(event, (message: Message) => {
          Promise.try(act, message).catch(fail)
        })
      }
      driver.startup(parameters)
      return ready.promise
    },
    close() {
      // Does not wait for the server to close, which takes a sixth of the time of a login.
      driver.end()
      settle(CLOSED)
    },
  }
}

const CLOSED = new Error('the connection is closed')
