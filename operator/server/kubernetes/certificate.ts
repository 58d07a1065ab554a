import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { V1Secret } from '@kubernetes/client-node'
import type { Secret } from '../../../crds/core.ts'
import { isPair, issueCertificate, type IssueRequest, type KeyPair, stillGood } from '../../certificates/local-ca.ts'
import type { Plain } from '../../kubernetes/kinds.ts'
import { decodeSecret, encodeSecret } from '../../secret-data.ts'
import type { DesiredServer } from './desired-server.ts'
import { childMetadata, childNames } from './manifests.ts'

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

/** Secret of a server's certificate. `tls.pem`: certificate and key in one file; `ca.crt`: CA of the operator's client certificate. */
export function certificateSecretOf({ server }: DesiredServer, { certificate, key }: KeyPair, ca: string): Plain<V1Secret> {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: childMetadata(server, childNames(server.metadata.name).certificate),
    type: 'kubernetes.io/tls',
    data: encodeSecret({ 'tls.crt': certificate, 'tls.key': key, 'tls.pem': `${certificate}${key}`, 'ca.crt': ca }),
  }
}

/** Key pair in a Secret of {@link certificateSecretOf}; undefined when it is incomplete. */
export function certificateIn(secret: Secret | undefined): KeyPair | undefined {
  const certificate = secret && decodeSecret(secret.data, 'tls.crt')
  const key = secret && decodeSecret(secret.data, 'tls.key')
  return certificate === undefined || key === undefined ? undefined : { certificate, key }
}
