import type { ClientChannel } from 'ssh2'
import { freshHostname, type startSshEdge } from './ssh-edge.ts'
import { KEY, logIn, type LoggedIn } from './ssh2-client.ts'

type SshEdge = Awaited<ReturnType<typeof startSshEdge>>

/** Usual port of the engine of these databases. */
export const DATABASE_PORT = 5432

/** Adds a database whose server listens on a port of loopback, and returns the hostname of its SSH tunnel. */
export function newDatabase(edge: SshEdge, port: number, internalHost?: string): string {
  const hostname = freshHostname()
  const database = { port: DATABASE_PORT, server: { host: '127.0.0.1', port }, internalHost }
  edge.routes.set(hostname, { authorizedKeys: [KEY.publicKey] }, [], database)
  return hostname
}

/** Logs in to the SSH tunnel of a database by {@link KEY}. */
export const logInTo = (edge: SshEdge, username: string): Promise<LoggedIn> =>
  logIn({ ports: { ssh: edge.port, http: 0, https: 0 }, set: () => Promise.resolve() }, { username })

/** Opens a channel. Rejects when the edge refuses it. */
export const channelTo = ({ client }: LoggedIn, host = 'db', port = DATABASE_PORT): Promise<ClientChannel> =>
  new Promise((resolve, reject) => {
    client.forwardOut('127.0.0.1', 1, host, port, (error, channel) => (error ? reject(error) : resolve(channel)))
  })
