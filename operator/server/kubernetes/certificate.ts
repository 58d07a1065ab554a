import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { isPair, issueCertificate, type IssueRequest, type KeyPair, stillGood } from '../../certificates/local-ca.ts'

/** Returns the stored certificate while it may stay in use, otherwise a new one. */
export async function currentCertificate(stored: KeyPair | undefined, desired: IssueRequest): Promise<KeyPair> {
  return stored && isPair(stored) && stillGood(stored, desired) ? stored : issueCertificate(desired)
}

/** Fingerprint of a certificate: 32 hex digits of its SHA-256. */
export const fingerprint = (certificate: X509Certificate): string =>
  certificate.fingerprint256.replaceAll(':', '').toLowerCase().slice(0, 32)

/** Whether a client that dials `host` accepts the certificate's names (RFC 6125). */
export function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined
}
