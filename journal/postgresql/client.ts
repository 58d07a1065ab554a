import { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { connectionConfig, ignore, type JournalLogin } from './login.ts'

/** Maximum time for the server to close a connection after our Terminate message, in milliseconds. */
const CLOSE_MS = 1_000
const sockets = new WeakMap<pg.Client, Socket>()

/**
 * Creates a client for the journal; call `connect` on it. Close it with {@link closeClient}. Throws what
 * {@link connectionConfig} throws.
 */
export function createClient(by: JournalLogin, about: Pick<pg.ClientConfig, 'application_name' | 'query_timeout'>): pg.Client {
  const socket = new Socket()
  const client = new pg.Client({ ...connectionConfig(by), ...about, stream: () => socket })
  sockets.set(client, socket)
  return client
}

/**
 * Closes a client. Never throws. Destroys the socket if the server does not close it in time, because an open socket keeps the
 * thread alive.
 */
export async function closeClient(client: pg.Client): Promise<void> {
  await Promise.race([client.end().catch(ignore), setTimeout(CLOSE_MS, undefined, { ref: false })])
  sockets.get(client)?.destroy()
}
