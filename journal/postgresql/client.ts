import { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { dialling, ignore, type JournalLogin } from './login.ts'

/** Between a goodbye and the end of the connection. */
const FAREWELL_MS = 1_000
const sockets = new WeakMap<pg.Client, Socket>()

/** A connection to the journal that is yet to be dialled, and is left by {@link endOf}. Throws what {@link dialling} throws. */
export function clientOf(by: JournalLogin, about: Pick<pg.ClientConfig, 'application_name' | 'query_timeout'>): pg.Client {
  const socket = new Socket()
  const client = new pg.Client({ ...dialling(by), ...about, stream: () => socket })
  sockets.set(client, socket)
  return client
}

/** Never throws. The driver waits for a server's farewell, which one that is mute never says; its socket would keep this thread alive. */
export async function endOf(client: pg.Client): Promise<void> {
  await Promise.race([client.end().catch(ignore), setTimeout(FAREWELL_MS, undefined, { ref: false })])
  sockets.get(client)?.destroy()
}
