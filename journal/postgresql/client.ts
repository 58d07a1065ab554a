import { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg, { type ClientConfig } from 'pg'
import { MooringError } from '../../shared/errors.ts'

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

/** Login of the journal, as in a Secret `journal-edge`, `journal-reader` or `journal-owner`. */
export interface JournalLogin {
  /** `postgresql://user:password@host:port/database`; `?sslmode=disable` for a server without TLS. */
  readonly uri: string
  /** PEM of the CA that must have signed the server's certificate; undefined: the CAs that Node trusts. */
  readonly ca?: string | undefined
}

/** Returns the current login; called before each new connection, since passwords and certificates change. May throw. */
export type LoginSource = () => Promise<JournalLogin>

/** Reads the login from a directory with the files `uri` and `ca.crt`, as a Secret is mounted. */
export function loginFromDirectory(directory: string): LoginSource {
  return async () => ({
    uri: (await readFile(join(directory, 'uri'), 'utf8')).trim(),
    ca: await textOf(join(directory, 'ca.crt')),
  })
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')) || undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Returns the driver's configuration. The driver's own reading of `sslmode` in a URI would replace the CA, so the URI is parsed
 * here: TLS with a verified certificate, unless the URI has `sslmode=disable`.
 * @throws MooringError `invalid_login`, without the URI, which holds a password
 */
export function connectionConfig({ uri, ca }: JournalLogin): ClientConfig & { readonly database: string } {
  const url = URL.parse(uri)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === '') {
    throw new MooringError(
      'invalid_login',
      'invalid URI of the journal: it must be like postgresql://user:password@host:port/database',
    )
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const user = decodeURIComponent(url.username)
  return {
    host,
    port: Number(url.port || 5432),
    user,
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || user,
    ssl: url.searchParams.get('sslmode') === 'disable' ? false : { ...(ca !== undefined && { ca }) },
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  }
}

/** Ignores an error of a connection that is broken or about to close: the waiting statement reports it. */
export function ignore(): void {
  // The waiting statement reports the error.
}
