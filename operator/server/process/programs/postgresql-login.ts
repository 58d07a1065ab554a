import { X509Certificate } from 'node:crypto'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { tlsTo } from '../../../engines/postgresql/connection.ts'
import type { AdminTarget } from '../../../engines/engine.ts'
import { codeOf } from '../error-code.ts'
import type { LoginAnswer } from './program.ts'

const TIMEOUT_MS = 2000

/** Nobody listens, the connection broke off, or `cannot_connect_now`. An error without a code is the driver's time-out. */
const NOT_YET = new Set<string | undefined>([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  // Its name or the way to it is not known yet: a pod's are made at the same time as the pod.
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
/** `too_many_connections`: it is up, and busy. */
const BUSY = '53300'

type OnCertificate = (certificate: X509Certificate) => void

/** Logs in as the admin, once. `onCertificate` gets the certificate that a server with TLS showed, when it could be trusted. */
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
  // A connection that breaks after its error was reported emits another.
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
