import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { isPair, issueCertificate, type IssueRequest, type KeyPair, stillGood } from '../../certificates/local-ca.ts'

/** The stored certificate while it may serve on, else a new one. */
export async function currentCertificate(stored: KeyPair | undefined, wanted: IssueRequest): Promise<KeyPair> {
  return stored && isPair(stored) && stillGood(stored, wanted) ? stored : issueCertificate(wanted)
}

/** Names a certificate in an annotation and in comparisons: 32 hex digits of its SHA-256. */
export const fingerprint = (certificate: X509Certificate): string =>
  certificate.fingerprint256.replaceAll(':', '').toLowerCase().slice(0, 32)

/** Whether a client that dials `host` takes it (RFC 6125). */
export function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined
}
