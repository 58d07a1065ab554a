import { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { connectionConfig, ignore, type JournalLogin } from './login.ts'

/** Maximum time for the server to close a connection after our Terminate message, in milliseconds. */
const CLOSE_MS = 1_000
const sockets = new WeakMap<pg.Client, Socket>()

/**
 * Creates a connection to the journal, not connected yet. Close it with {@link endOf}. Throws what {@link connectionConfig}
 * throws.
 */
export function clientOf(by: JournalLogin, about: Pick<pg.ClientConfig, 'application_name' | 'query_timeout'>): pg.Client {
  const socket = new Socket()
  const client = new pg.Client({ ...connectionConfig(by), ...about, stream: () => socket })
  sockets.set(client, socket)
  return client
}

/**
 * Closes a connection. Never throws. The driver waits for the server to close; when the server stops responding, the open socket
 * would keep this thread alive.
 */
export async function endOf(client: pg.Client): Promise<void> {
  await Promise.race([client.end().catch(ignore), setTimeout(CLOSE_MS, undefined, { ref: false })])
  sockets.get(client)?.destroy()
}
