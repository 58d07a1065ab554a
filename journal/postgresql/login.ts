import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientConfig } from 'pg'
import { MooringError } from '../../shared/errors.ts'

/** What a Secret `journal-edge`, `journal-reader` or `journal-owner` holds. */
export interface JournalLogin {
  /** `postgresql://user:password@host:port/database`; `?sslmode=disable` for a server without TLS. */
  readonly uri: string
  /** PEM of the CA that the server's certificate must be of; those that Node trusts when undefined. */
  readonly ca?: string | undefined
}

/** Asked before each new connection: passwords and certificates change. May throw. */
export type LoginSource = () => Promise<JournalLogin>

/** The login in a directory with the files `uri` and `ca.crt`, as a Secret is mounted. */
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
 * How the driver dials. What the driver makes of `sslmode` in a URI replaces the CA that it is given, so the URI is taken apart here:
 * TLS with a verified certificate, unless the URI says `sslmode=disable`.
 * @throws MooringError `invalid_login`, without the URI, which holds a password
 */
export function dialling({ uri, ca }: JournalLogin): ClientConfig & { readonly database: string } {
  const url = URL.parse(uri)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === '') {
    throw new MooringError('invalid_login', 'the URI of the journal must be like postgresql://user:password@host:port/database')
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

/** What a connection says that is broken, or about to be ended: whoever waits for something is told by what he waits for. */
export function ignore(): void {
  // Nothing to do: see above.
}
