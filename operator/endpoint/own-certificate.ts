import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { Secret } from '../../crds/core.ts'
import { annotations, labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { CERTIFICATE_EXPIRING, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Decision } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import { issuerOf } from '../acme/issued-certificate.ts'
import { isPair, type KeyPair } from '../certificates/local-ca.ts'
import { keyPairIn } from '../secret-data.ts'
import { certificateKey, certificateSecret } from '../tunnel/resources.ts'

/** State of the certificate of `spec.tlsSecretName` in the endpoint's status. */
export type OwnCertificateStatus = NonNullable<NonNullable<TunnelEndpoint['status']>['certificate']>

interface Deps {
  readonly store: Pick<Store, 'get' | 'create' | 'mergePatch'>
  readonly now: () => Date
}

/**
 * Creates the function that takes over the certificate of an endpoint's `spec.tlsSecretName`. It copies a usable certificate to the Secret
 * that the edges of the endpoint read, so that edges need no access to Secrets of the administrator. An unusable certificate replaces
 * nothing. The function returns the state for the endpoint's status; undefined for an endpoint without such a Secret.
 */
export function createCertificateCopier({ store, now }: Deps) {
  return async function takeOver(endpoint: TunnelEndpoint): Promise<OwnCertificateStatus | undefined> {
    const { tlsSecretName, domain } = endpoint.spec
    if (tlsSecretName === undefined) return undefined
    const at = now()
    const given = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: tlsSecretName })
    const copy = await store.get(Secret, certificateKey(endpoint, ''))
    const lastError = problemOf(given, { name: tlsSecretName, domain, now: at })
    if (!given || lastError !== undefined) return fallback(copy, { domain, now: at, lastError })
    if (copy && isCopyOf(copy, given, endpoint)) return statusOf(copy)
    return statusOf(await write(endpoint, { copy, pair: keyPairIn(given), at }))
  }

  async function write(endpoint: TunnelEndpoint, { copy, pair, at }: Writing): Promise<Secret> {
    const secret = certificateSecret(endpoint, '', { ...pair, at, copiedFrom: endpoint.spec.tlsSecretName })
    if (!copy) return store.create(Secret, secret)
    const { data, metadata } = secret
    // Null removes what a certificate by ACME had.
    const noted: Readonly<Record<string, string | null>> = {
      [annotations.acmeDirectory]: null,
      [annotations.acmeId]: null,
      ...metadata.annotations,
    }
    const marks = { labels: metadata.labels, annotations: noted as Readonly<Record<string, string>> }
    return store.mergePatch(Secret, certificateKey(endpoint, ''), { data, metadata: marks })
  }
}

const DAY_MS = 86_400_000

/**
 * Returns the condition about a certificate that ends soon and that Mooring does not renew; undefined before that. Soon is a tenth of its time here, at
 * least a day and at most two weeks. Pure.
 */
export function expiringSoon(
  { status, obtainedAt = '', expiresAt = '' }: OwnCertificateStatus,
  { secretName, now }: { readonly secretName: string | undefined; readonly now: Date },
): Decision | undefined {
  const end = Date.parse(expiresAt)
  const soonMs = Math.max(DAY_MS, Math.min(14 * DAY_MS, (end - Date.parse(obtainedAt)) / 10))
  if (status !== 'valid' || now.getTime() < end - soonMs) return undefined
  const message = `the certificate in the Secret ${secretName ?? ''} expires at ${expiresAt}: renew it`
  return { status: 'True', reason: CERTIFICATE_EXPIRING, message }
}

interface Writing {
  /** Secret of the edges; undefined when there is none. */
  readonly copy: Secret | undefined
  readonly pair: KeyPair
  readonly at: Date
}

/** Whether the Secret of the edges has the given certificate already. */
function isCopyOf(copy: Secret, given: Secret, { metadata, spec }: TunnelEndpoint): boolean {
  const [own, theirs] = [keyPairIn(copy), keyPairIn(given)]
  const { labels: marks, annotations: noted } = copy.metadata
  const isMarked = marks?.[labels.endpoint] === metadata.name && noted?.[annotations.copiedFrom] === spec.tlsSecretName
  return isMarked && own.certificate === theirs.certificate && own.key === theirs.key
}

function statusOf({ data, metadata }: Secret): OwnCertificateStatus {
  const certificate = new X509Certificate(keyPairIn({ data }).certificate)
  return {
    status: 'valid',
    issuer: issuerOf(certificate),
    obtainedAt: metadata.annotations?.[annotations.obtainedAt] ?? certificate.validFromDate.toISOString(),
    expiresAt: certificate.validToDate.toISOString(),
  }
}

interface Failed {
  readonly domain: string
  readonly now: Date
  readonly lastError: string | undefined
}

/** State while the given Secret is unusable: an earlier copy stays in use until it expires. Pure. */
function fallback(copy: Secret | undefined, { domain, now, lastError }: Failed): OwnCertificateStatus {
  const pair = copy?.metadata.annotations?.[annotations.copiedFrom] === undefined ? undefined : keyPairIn(copy)
  if (!copy || !pair || !isPair(pair) || !covers(new X509Certificate(pair.certificate), domain))
    return { status: 'failed', lastError }
  const status = statusOf(copy)
  return { ...status, status: Date.parse(status.expiresAt ?? '') > now.getTime() ? 'valid' : 'expired', lastError }
}

interface Expected {
  /** Name of the Secret. */
  readonly name: string
  readonly domain: string
  readonly now: Date
}

/** Reason why the Secret of an administrator has no usable certificate, with what to do; undefined when it has one. Pure. */
export function problemOf(
  secret: Pick<Secret, 'type' | 'data'> | undefined,
  { name, domain, now }: Expected,
): string | undefined {
  const where = `the Secret ${name} in ${SYSTEM_NAMESPACE}`
  if (!secret) return `${where} does not exist: create it, with type kubernetes.io/tls`
  if (secret.type !== 'kubernetes.io/tls') return `${where} must have the type kubernetes.io/tls, not ${secret.type}`
  const problem = pairProblem(keyPairIn(secret), { domain, now })
  return problem && `${where}: ${problem}`
}

/** Reason why a certificate and its key cannot serve `*.{domain}`, with what to do; undefined when they can. Pure. */
export function pairProblem(pair: KeyPair, { domain, now }: Omit<Expected, 'name'>): string | undefined {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pair.certificate)
  } catch {
    return 'tls.crt is no certificate in PEM'
  }
  if (!isPair(pair)) return 'tls.key must be the private key of the first certificate in tls.crt, in PEM and without a password'
  if (!covers(certificate, domain)) {
    return `the certificate is for ${namesOf(certificate)}; it must be for *.${domain}`
  }
  if (certificate.validToDate <= now) return `the certificate has expired at ${certificate.validToDate.toISOString()}: renew it`
  if (certificate.validFromDate > now) {
    return `the certificate is not valid before ${certificate.validFromDate.toISOString()}; the clock of this machine may be wrong`
  }
  try {
    createSecureContext({ cert: pair.certificate, key: pair.key })
    return undefined
  } catch (error) {
    return `TLS does not accept tls.crt and tls.key: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** Hostname that stands for those of all tunnels. */
const ANY = '0123456789abcdef'

/** Whether browsers accept the certificate for each hostname below the domain. They ignore its common name. */
const covers = (certificate: X509Certificate, domain: string): boolean =>
  certificate.checkHost(`${ANY}.${domain}`, { subject: 'never' }) !== undefined

const namesOf = ({ subjectAltName = '' }: X509Certificate): string =>
  subjectAltName === '' ? 'no name (its subjectAltName is empty)' : subjectAltName.replaceAll('DNS:', '').slice(0, 300)
