import { once } from 'node:events'
import type pg from 'pg'
import { clientOf, endOf } from './client.ts'
import { CHANNEL } from './functions.ts'
import type { LoginSource } from './login.ts'

const RETRY_MS = 1_000
const ANSWER_MS = 10_000

export interface ListenerDeps {
  readonly login: LoginSource
  /** A notification: the text of its payload. */
  readonly onPayload: (payload: string) => void
  /** Each time that it listens, the first and after each break. */
  readonly onListening: () => Promise<void>
  /** It cannot listen now, and tries again. */
  readonly onFailure: (error: unknown) => void
}

/** One connection that hears the journal's notifications; dialled by `start`, and again when it breaks. */
export interface Listener extends AsyncDisposable {
  start(): void
  /** Runs a statement on that connection. @throws what the driver throws, or when there is none now, or one by a login that has changed */
  run(text: string, values: readonly unknown[]): Promise<void>
}

export function createListener({ login, onPayload, onListening, onFailure }: ListenerDeps): Listener {
  const closing = new AbortController()
  let client: pg.Client | undefined
  let dialledBy: string | undefined
  let running: Promise<void> | undefined

  async function listen(): Promise<void> {
    const by = await login()
    const dialled = clientOf(by, { application_name: 'mooring-journal-follow', query_timeout: ANSWER_MS })
    const ended = Promise.withResolvers<undefined>()
    dialled.on('error', onFailure)
    dialled.on('end', () => ended.resolve(undefined))
    dialled.on('notification', ({ payload = '' }) => onPayload(payload))
    const stop = () => void endOf(dialled)
    try {
      await dialled.connect()
      closing.signal.addEventListener('abort', stop)
      await dialled.query(`LISTEN ${CHANNEL}`)
      client = dialled
      dialledBy = JSON.stringify(by)
      await onListening()
      if (!closing.signal.aborted) await ended.promise
    } finally {
      client = undefined
      closing.signal.removeEventListener('abort', stop)
      await endOf(dialled)
    }
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await listen()
      } catch (error) {
        onFailure(error)
      }
      await pause()
    }
  }

  /** Until the next try, or the end. */
  async function pause(): Promise<void> {
    const over = AbortSignal.any([closing.signal, AbortSignal.timeout(RETRY_MS)])
    if (!over.aborted) await once(over, 'abort')
  }

  return {
    start() {
      running ??= run()
    },
    async run(text, values) {
      const isCurrent = JSON.stringify(await login()) === dialledBy
      if (!client) throw new Error('nothing listens to the journal now')
      if (!isCurrent) {
        // It is dialled again, where the journal is now.
        await endOf(client)
        throw new Error('the login to the journal has changed')
      }
      await client.query(text, [...values])
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
    },
  }
}
