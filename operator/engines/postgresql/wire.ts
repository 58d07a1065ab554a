import pg from 'pg'
import type { AdminTarget } from '../engine.ts'

interface Message {
  readonly data: string
}

/** The part of the driver's Connection (the wire protocol over TCP or TLS) that its types leave out. */
interface Driver extends pg.Connection {
  connect(port: number, host: string): void
  requestSsl(): void
  startup(parameters: Readonly<Record<string, string>>): void
  sendSASLInitialResponseMessage(mechanism: string, message: string): void
  sendSCRAMClientFinalMessage(message: string): void
}

/** One connection to a server, on which a login may be spoken step by step (PostgreSQL documentation, "Message Flow"). */
export interface Wire {
  /** Resolves when the server may be spoken to: over TLS, where the target has a CA. @throws what the driver throws; an Error when the time is up */
  readonly dialled: Promise<undefined>
  readonly send: Pick<Driver, 'sendSASLInitialResponseMessage' | 'sendSCRAMClientFinalMessage'>
  /**
   * Asks for a session with `parameters` and answers the server's messages by `steps`, until it is ready for queries.
   * @throws what the server says, what a step throws, or an Error when the connection ends or the time is up
   */
  converse(parameters: Readonly<Record<string, string>>, steps: Readonly<Record<string, Step>>): Promise<undefined>
  /** Resolves when the connection is no more. Never rejects. */
  readonly ended: Promise<undefined>
  close(): void
}

type Step = (message: Message) => unknown

/** Dials; `ms` is the time for all that is spoken, after which the connection is closed. */
export function dial({ host, port, ca }: AdminTarget, ms: number): Wire {
  const driver = new pg.Connection({ ssl: ca === undefined ? false : { ca } }) as Driver
  const dialled = Promise.withResolvers<undefined>()
  const ready = Promise.withResolvers<undefined>()
  const ended = Promise.withResolvers<undefined>()
  // Each is told of the same failure, and not each has somebody who waits for it.
  for (const { promise } of [dialled, ready]) promise.catch(nobody)

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

  const timer = setTimeout(() => fail(new Error('the server does not answer')), ms)
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
      // Nobody waits for the goodbye: it takes a sixth of the time.
      driver.end()
      settle(CLOSED)
    },
  }
}

const CLOSED = new Error('the connection is closed')

function nobody(): void {
  // Nothing to do: see above.
}
