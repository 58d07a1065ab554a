import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { dialling, TIMEOUTS } from '../../../operator/engines/postgresql/connection.ts'

export const ADMIN = { user: 'mooring', password: 'admin-of-a-throw-away-server' }

/** PostgreSQL server for one test file, configured like Mooring's shared servers. */
export interface ThrowAwayPostgres extends AsyncDisposable {
  readonly target: AdminTarget
  /** Version that the program reports: `15.4`. */
  readonly version: string
  /** Connects a client that ends with the server. Default: the admin in the maintenance database. */
  readonly client: (login?: { user?: string; password?: string; database?: string }) => Promise<pg.Client>
  /** Kills the server as in a crash, and starts it again on the same port. */
  crash(): Promise<void>
  /** Returns the log of the server. */
  log(): string
}

/** Clients of one server, disposed together. */
export interface Clients {
  readonly open: ThrowAwayPostgres['client']
  end(): Promise<void>
}

export function clientsOf(target: AdminTarget): Clients {
  const clients: pg.Client[] = []
  return {
    async open(login = {}) {
      const { user, password } = target
      const client = new pg.Client({ ...dialling(target, TIMEOUTS), user, password, database: 'postgres', ...login })
      client.on('error', () => undefined)
      await client.connect()
      clients.push(client)
      return client
    },
    async end() {
      await Promise.all(clients.map((client) => client.end()))
    },
  }
}

const START_MS = 30_000

export interface Starting {
  readonly target: AdminTarget
  /** Whether the server still runs, so that waiting makes sense. */
  readonly isAlive: () => boolean
  readonly log: () => string
}

/** Waits until the admin can log in. @throws Error with the server's log when that fails */
export async function untilReachable({ target, isAlive, log }: Starting): Promise<void> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    if (!isAlive()) throw new Error(`PostgreSQL ended at once: ${log()}`)
    if (await accepts(target)) return
    await delay(20)
  }
  throw new Error(`PostgreSQL does not accept logins: ${log()}`)
}

async function accepts(target: AdminTarget): Promise<boolean> {
  const clients = clientsOf(target)
  try {
    await clients.open()
    return true
  } catch {
    return false
  } finally {
    await clients.end()
  }
}

/** Extracts the version: `postgres (PostgreSQL) 15.4 (Debian …)` → `15.4`. */
export function versionIn(output: string): string {
  const version = /\d+\.\d+/.exec(output)?.[0]
  if (version === undefined) throw new Error(`no version: ${output}`)
  return version
}
