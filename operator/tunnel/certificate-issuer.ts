import { createHmac, hkdfSync, X509Certificate } from 'node:crypto'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { isPair, issueCertificate, type KeyPair, renewalTime, stillGood } from '../certificates/local-ca.ts'
import type { Mac } from './hostname-mark.ts'
import type { HeldCertificate } from './plan.ts'

/** Who signs the certificates of tunnels. ACME is one more of these. */
export interface CertificateIssuer {
  /** What the contract's field `issuer` says. */
  readonly name: string
  /** A certificate chain and its key for one name, which may be a wildcard. @throws when it cannot be had now */
  obtain(name: string): Promise<KeyPair>
  /** Whether a certificate is from it, for this name, at this time. */
  isFrom(held: KeyPair, name: string, now: Date): boolean
}

/** Every installation has one. */
export interface LocalIssuer extends CertificateIssuer {
  /** By a key that is derived from the CA's, and lost with it. */
  readonly mac: Mac
}

export interface Issuers extends Readonly<Record<TunnelEndpoint['spec']['issuer'], CertificateIssuer | undefined>> {
  readonly local: LocalIssuer
}

/** Of the key that hostnames are authenticated by (RFC 5869, section 3.2). */
const MAC_INFO = 'mooring.dev/hostname'

/** The installation's own CA. */
export function localIssuer(ca: () => KeyPair, clock: () => Date = () => new Date()): LocalIssuer {
  return {
    mac: (text) =>
      createHmac('sha256', new Uint8Array(hkdfSync('sha256', ca().key, '', MAC_INFO, 32)))
        .update(text)
        .digest('base64url'),
    name: 'Mooring local CA',
    obtain: (name) => issueCertificate({ ca: ca(), names: [name], now: clock() }),
    // Renewal is planned with its own jitter, so one that is due still fits.
    isFrom: (held, name, now) =>
      stillGood(held, {
        ca: ca(),
        names: [name],
        now: new Date(Math.min(now.getTime(), renewalTime(held.certificate).getTime() - 1)),
      }),
  }
}

/** A certificate as its Secret has it. */
export interface KeptCertificate extends KeyPair {
  /** What the Secret says of when it was signed, as it stands there. */
  readonly obtainedAt: string | undefined
}

/** Up to a tenth of the lifetime, by the certificate itself: a thousand that were made in one second are not renewed in one. */
const JITTER = 0.1

export function describe(
  held: KeptCertificate,
  about: { readonly issuer: CertificateIssuer; readonly name: string; readonly now: Date },
): HeldCertificate {
  const { validFromDate, validToDate, serialNumber } = new X509Certificate(held.certificate)
  const lifetime = validToDate.getTime() - validFromDate.getTime()
  const share = Number.parseInt(serialNumber.slice(-4), 16) / 0x10000
  return {
    issuer: about.issuer.name,
    obtainedAt: signedAt(held.obtainedAt, validFromDate, validToDate),
    expiresAt: validToDate.getTime(),
    renewAt: renewalTime(held.certificate).getTime() - share * JITTER * lifetime,
    fits: isPair(held) && about.issuer.isFrom(held, about.name, about.now),
  }
}

/** Somebody's own text, or a time that the certificate is not good at, does not count: then it is where the certificate begins to. */
function signedAt(said: string | undefined, from: Date, to: Date): number {
  const at = Date.parse(said ?? '')
  return at >= from.getTime() && at <= to.getTime() ? at : from.getTime()
}
