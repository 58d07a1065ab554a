import { X509Certificate } from 'node:crypto'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { tlsTo } from '../../../engines/postgresql/connection.ts'
import type { AdminTarget } from '../../../engines/engine.ts'
import { codeOf } from '../error-code.ts'
import type { LoginAnswer } from './program.ts'

const TIMEOUT_MS = 2000

/** Codes of a server that is not up yet: no listener, a broken connection, `cannot_connect_now`. The driver's time-out has no code. */
const NOT_YET = new Set<string | undefined>([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  // The host name or the route is unknown yet: a pod's are created together with the pod.
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  '57P01',
  '57P02',
  '57P03',
  undefined,
])
/** Code `too_many_connections`: the server is up. */
const BUSY = '53300'

type OnCertificate = (certificate: X509Certificate) => void

/** Tries one login as the admin. `onCertificate` receives the certificate that a server with TLS showed, if it is trusted. */
export async function logInToPostgresql(
  { ca, client: own, ...target }: AdminTarget,
  onCertificate?: OnCertificate,
): Promise<LoginAnswer> {
  const client = new pg.Client({
    ...target,
    database: 'postgres',
    application_name: 'mooring',
    connectionTimeoutMillis: TIMEOUT_MS,
    ...(ca !== undefined && { ssl: tlsOf({ ca, client: own }, onCertificate) }),
  })
  // A broken connection emits another error after the reported one.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return { login: 'accepted' }
  } catch (error) {
    const code = codeOf(error)
    if (NOT_YET.has(code)) return { login: 'notYet' }
    return code === BUSY ? { login: 'accepted' } : { login: 'refused', code: code ?? 'unknown' }
  } finally {
    await client.end().catch(() => undefined)
  }
}

function tlsOf(target: Pick<AdminTarget, 'ca' | 'client'>, onCertificate: OnCertificate = () => undefined): ConnectionOptions {
  return {
    ...tlsTo(target),
    checkServerIdentity(host, shown) {
      onCertificate(new X509Certificate(shown.raw))
      return checkServerIdentity(host, shown)
    },
  }
}
