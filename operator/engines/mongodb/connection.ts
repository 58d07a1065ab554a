import { type Db, type Document, MongoClient, type MongoClientOptions } from 'mongodb'
import type { AdminTarget } from '../engine.ts'

/** Timeouts of the administrator's connections, in ms. */
export interface Timeouts {
  readonly connectMs: number
  /** Maximum duration of most commands. */
  readonly commandMs: number
  /** Maximum duration of a command that reads or writes whole databases. */
  readonly longCommandMs: number
}

export const TIMEOUTS: Timeouts = { connectMs: 5_000, commandMs: 30_000, longCommandMs: 600_000 }

/** Administrator's session: a set of connections for one kind of work. */
export interface Session {
  db(name: string): Db
  /** Runs a command. @throws errors of the driver */
  command(database: string, command: Document): Promise<Document>
}

/**
 * The administrator's connections to one server. Each kind of work has its own connections, so that a command delayed by one tenant takes no
 * connection from claims of other tenants or from the watchdog. The connections of claims and of the watchdog stay open, because clients may
 * use up the other connections of the server.
 */
export interface Connection extends Session, AsyncDisposable {
  /** Session for copies and drops, whose duration grows with the size of a database. */
  readonly long: Session
  /** Session of the watchdog. */
  readonly watch: Session
}

/** Connections of each kind of work. */
const SIZES = {
  claims: { minPoolSize: 2, maxPoolSize: 8 },
  long: { minPoolSize: 0, maxPoolSize: 4 },
  watch: { minPoolSize: 1, maxPoolSize: 1 },
} as const

/** Returns the driver's options for a connection to a target. */
export function dialling(
  { ca, client, source }: Pick<AdminTarget, 'ca' | 'client' | 'source'>,
  timeouts: Timeouts,
): MongoClientOptions {
  return {
    appName: 'mooring',
    directConnection: true,
    connectTimeoutMS: timeouts.connectMs,
    serverSelectionTimeoutMS: timeouts.connectMs,
    // The default opens one more connection for each client.
    serverMonitoringMode: 'poll',
    ...(ca !== undefined && { tls: true, ca }),
    ...(source !== undefined && { localAddress: source }),
    ...(client && { cert: client.certificate, key: client.key }),
  }
}

/** Returns the connection string of a server, without credentials. */
export function addressOf({ host, port }: Pick<AdminTarget, 'host' | 'port'>): string {
  return `mongodb://${host.includes(':') ? `[${host}]` : host}:${port}/`
}

/** Creates the administrator's connections to a server, which connect at the first call, and again after a loss. */
export function connect(target: AdminTarget, timeouts: Timeouts = TIMEOUTS): Connection {
  const clients = new Set<MongoClient>()
  let isDisposed = false

  function openClient(socketTimeoutMS: number, sizes: { minPoolSize: number; maxPoolSize: number }): MongoClient {
    const client = new MongoClient(addressOf(target), {
      ...dialling(target, timeouts),
      ...sizes,
      auth: { username: target.user, password: target.password },
      authSource: 'admin',
      authMechanism: 'SCRAM-SHA-256',
      // Bounds the wait for a server that does not respond.
      socketTimeoutMS,
    })
    clients.add(client)
    // A client whose first connection failed stays closed.
    client.once('topologyClosed', () => clients.delete(client))
    return client
  }

  function open(socketTimeoutMS: number, sizes: { minPoolSize: number; maxPoolSize: number }): Session {
    let client: MongoClient | undefined
    const db = (name: string): Db => {
      if (!client || (!clients.has(client) && !isDisposed)) client = openClient(socketTimeoutMS, sizes)
      return client.db(name)
    }
    return { db, command: (database, command) => db(database).command(command) }
  }

  return {
    ...open(timeouts.commandMs, SIZES.claims),
    long: open(timeouts.longCommandMs, SIZES.long),
    watch: open(timeouts.commandMs, SIZES.watch),
    async [Symbol.asyncDispose]() {
      isDisposed = true
      await Promise.all([...clients].map((client) => client.close()))
    },
  }
}
