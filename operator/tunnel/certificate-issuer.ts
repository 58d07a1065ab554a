import { createHmac, hkdfSync, X509Certificate } from 'node:crypto'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { isIssued, isKeyOf, issueCertificate, type KeyPair } from '../certificates/local-ca.ts'
import type { Mac } from './hostname-mark.ts'
import type { HeldCertificate } from './plan.ts'

/** Who signs the certificates of tunnels. ACME is one more of these. */
export interface CertificateIssuer {
  /** What the contract's field `issuer` says: another when other certificates must be obtained. */
  readonly name: string
  /** A certificate chain and its key for one name, which may be a wildcard. @throws when it cannot be had now */
  obtain(name: string): Promise<KeyPair>
  /** Whether a certificate is from it, for this name, at this time. */
  isFrom(certificate: X509Certificate, name: string, now: Date): boolean
}

/** Every installation has one. */
export interface LocalIssuer extends CertificateIssuer {
  /** By a key that is derived from the CA's, and lost with it. */
  readonly mac: Mac
}

export interface Issuers extends Readonly<Record<TunnelEndpoint['spec']['issuer'], CertificateIssuer | undefined>> {
  readonly local: LocalIssuer
}

/** Whether there is somebody who signs the certificates of an endpoint's tunnels. */
export const signsFor = (issuers: Issuers, { spec }: TunnelEndpoint): boolean => issuers[spec.issuer] !== undefined

/** Of the key that hostnames are authenticated by (RFC 5869, section 3.2). */
const MAC_INFO = 'mooring.dev/hostname'

/** The installation's own CA. */
export function localIssuer(ca: () => KeyPair, clock: () => Date = () => new Date()): LocalIssuer {
  const authority = parsed(() => ca().certificate)
  return {
    mac: (text) =>
      createHmac('sha256', new Uint8Array(hkdfSync('sha256', ca().key, '', MAC_INFO, 32)))
        .update(text)
        .digest('base64url'),
    get name() {
      return commonName(authority())
    },
    obtain: (name) => issueCertificate({ ca: ca(), names: [name], now: clock() }),
    isFrom: (certificate, name, now) => isIssued(certificate, { authority: authority(), names: [name], now }),
  }
}

/** To parse it costs a tenth of a millisecond, for each of thousands of tunnels. */
function parsed(pem: () => string): () => X509Certificate {
  let last: { readonly pem: string; readonly certificate: X509Certificate } | undefined
  return () => {
    const now = pem()
    if (last?.pem !== now) last = { pem: now, certificate: new X509Certificate(now) }
    return last.certificate
  }
}

const commonName = ({ subject }: X509Certificate): string => /^CN=(.+)$/m.exec(subject)?.[1] ?? subject

/** A certificate as its Secret has it. */
export interface KeptCertificate extends KeyPair {
  /** What the Secret says of when it was signed, as it stands there. */
  readonly obtainedAt: string | undefined
}

/** Two thirds of a lifetime are over then. */
const SHARE = 2 / 3
/** Up to a tenth of the lifetime, by the hostname: a thousand that were made in one second are not renewed in one. */
const JITTER = 0.1

/** When to obtain another, in milliseconds since the epoch, as the next. */
export function renewalTime(
  { obtainedAt, expiresAt }: Pick<HeldCertificate, 'obtainedAt' | 'expiresAt'>,
  hostname: string,
): number {
  const spread = Number.parseInt(hostname.slice(-4), 16) / 0x10000
  return obtainedAt + (expiresAt - obtainedAt) * (SHARE - spread * JITTER)
}

export function describe(
  held: KeptCertificate,
  about: { readonly issuer: CertificateIssuer; readonly name: string; readonly hostname: string; readonly now: Date },
): HeldCertificate {
  const certificate = new X509Certificate(held.certificate)
  const { validFromDate, validToDate } = certificate
  const times = { obtainedAt: signedAt(held.obtainedAt, validFromDate, validToDate), expiresAt: validToDate.getTime() }
  return {
    ...times,
    issuer: about.issuer.name,
    renewAt: renewalTime(times, about.hostname),
    fits: isKeyOf(certificate, held.key) && about.issuer.isFrom(certificate, about.name, about.now),
  }
}

/** Issuers let a certificate begin some hours before they sign it: within this share of its lifetime it was signed. */
const EARLY = 0.1

/** What cannot be, somebody's own text or a time that would put its renewal off, does not count: then it is where the certificate begins. */
function signedAt(said: string | undefined, from: Date, to: Date): number {
  const [at, begin] = [Date.parse(said ?? ''), from.getTime()]
  return at >= begin && at - begin <= (to.getTime() - begin) * EARLY ? at : begin
}
