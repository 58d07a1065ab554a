import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createClient, closeClient, type LoginSource } from './client.ts'

const RETRY_MS = 1_000
const ANSWER_MS = 10_000

export interface ListenerDeps {
  readonly login: LoginSource
  readonly channel: string
  /** Called with the payload of each notification. */
  readonly onPayload: (payload: string) => void
  /** Called each time that listening has begun: at first, and after each break of the connection. */
  readonly onListening: () => Promise<void>
  /** Called when listening fails; it is retried. */
  readonly onFailure: (error: unknown) => void
}

/** Connection that receives the journal's notifications. `start` opens it; it is opened again after each break. */
export interface Listener extends AsyncDisposable {
  start(): void
  /**
   * Runs a statement on this connection. @throws what the driver throws; an Error while there is no connection, or when the login
   * has changed
   */
  run(text: string, values: readonly unknown[]): Promise<void>
}

export function createListener({ login, channel, onPayload, onListening, onFailure }: ListenerDeps): Listener {
  const closing = new AbortController()
  let client: pg.Client | undefined
  let currentLogin: string | undefined
  let running: Promise<void> | undefined

  async function listen(): Promise<void> {
    const credentials = await login()
    const opened = createClient(credentials, { application_name: 'mooring-journal-follow', query_timeout: ANSWER_MS })
    const ended = Promise.withResolvers<undefined>()
    opened.on('error', onFailure)
    opened.on('end', () => ended.resolve(undefined))
    opened.on('notification', ({ payload = '' }) => onPayload(payload))
    const stop = () => void closeClient(opened)
    try {
      await opened.connect()
      closing.signal.addEventListener('abort', stop)
      await opened.query(`LISTEN ${channel}`)
      client = opened
      currentLogin = JSON.stringify(credentials)
      await onListening()
      if (!closing.signal.aborted) await ended.promise
    } finally {
      client = undefined
      closing.signal.removeEventListener('abort', stop)
      await closeClient(opened)
    }
  }

  async function loop(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await listen()
      } catch (error) {
        onFailure(error)
      }
      await pause()
    }
  }

  /** Waits until the next attempt, or until the listener is closed. */
  async function pause(): Promise<void> {
    const over = AbortSignal.any([closing.signal, AbortSignal.timeout(RETRY_MS)])
    if (!over.aborted) await once(over, 'abort')
  }

  return {
    start() {
      running ??= loop()
    },
    async run(text, values) {
      const isCurrent = JSON.stringify(await login()) === currentLogin
      if (!client) throw new Error('not connected to the journal')
      if (!isCurrent) {
        // The loop connects again, with the new login.
        await closeClient(client)
        throw new Error('login of the journal has changed')
      }
      await client.query(text, [...values])
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
    },
  }
}

/** Waits for notifications that this process sent itself. Each arrives after all notifications committed before it. */
export interface Barriers {
  /**
   * Sends a notification, and resolves when it has arrived or when `signal` aborts: a broken connection may lose it. @throws what
   * `notify` throws
   */
  pass(signal: AbortSignal): Promise<void>
  /** Reports that the notification with this token has arrived. */
  reached(token: string): void
  /** Number of notifications that have not arrived yet. */
  readonly waiting: number
}

export function createBarriers(notify: (token: string) => Promise<void>): Barriers {
  const waiting = new Map<string, () => void>()
  return {
    async pass(signal) {
      const token = randomUUID()
      const over = Promise.withResolvers<undefined>()
      const settle = () => over.resolve(undefined)
      waiting.set(token, settle)
      signal.addEventListener('abort', settle, { once: true })
      try {
        if (signal.aborted) return
        // A connection that is about to break may answer late, or never.
        await Promise.race([notify(token), over.promise])
        await over.promise
      } finally {
        signal.removeEventListener('abort', settle)
        waiting.delete(token)
      }
    },
    reached: (token) => waiting.get(token)?.(),
    get waiting() {
      return waiting.size
    },
  }
}
