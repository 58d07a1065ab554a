import { createHmac, hkdfSync, X509Certificate } from 'node:crypto'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Acme } from '../acme/acme.ts'
import { isIssued, isKeyOf, issueCertificate, type KeyPair } from '../certificates/local-ca.ts'
import type { Mac } from './resources.ts'
import type { HeldCertificate } from './plan.ts'

/** Issuer that signs at once. */
export interface CertificateIssuer {
  /** Value of `issuer` in the API: another name means that other certificates must be obtained. */
  readonly name: string
  /** Obtains a certificate chain and its key for one name, which may be a wildcard. @throws when that fails */
  obtain(name: string): Promise<KeyPair>
  /** Whether this issuer signed the certificate, and it is valid for the name at this time. */
  isFrom(certificate: X509Certificate, name: string, now: Date): boolean
}

/** Issuer with the CA of the installation, which every installation has. */
export interface LocalIssuer extends CertificateIssuer {
  /** MAC with a key that is derived from the CA's, and lost with it. */
  readonly mac: Mac
}

export interface Issuers {
  readonly local: LocalIssuer
  /** Orders at public CAs; undefined where none can be made. */
  readonly acme: Acme | undefined
}

/** Whether certificates for the tunnels of an endpoint can be obtained. */
export const signsFor = ({ acme }: Issuers, { spec }: TunnelEndpoint): boolean =>
  spec.issuer === 'local' || (acme !== undefined && spec.acme?.agreeToTerms === true)

/** Context of the key that authenticates hostnames (RFC 5869, section 3.2). */
const MAC_INFO = 'mooring.dev/hostname'

/** Creates the issuer with the installation's own CA. */
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

/** Caches a parsed certificate: parsing takes a tenth of a millisecond, for each of thousands of tunnels. */
function parsed(pem: () => string): () => X509Certificate {
  let last: { readonly pem: string; readonly certificate: X509Certificate } | undefined
  return () => {
    const now = pem()
    if (last?.pem !== now) last = { pem: now, certificate: new X509Certificate(now) }
    return last.certificate
  }
}

const commonName = ({ subject }: X509Certificate): string => /^CN=(.+)$/m.exec(subject)?.[1] ?? subject

/** Certificate as its Secret holds it. */
export interface KeptCertificate extends KeyPair {
  /** Time of signing as the Secret's annotation has it. */
  readonly obtainedAt: string | undefined
}

/** Share of a lifetime after which a certificate is renewed. */
const SHARE = 2 / 3
/** Maximum share of a lifetime by which the renewal varies with the hostname: certificates made together are renewed at different times. */
const JITTER = 0.1

/** Time of the renewal, in milliseconds since the epoch. */
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

/** Share of a lifetime by which its begin may precede the signing: issuers backdate certificates by some hours. */
const EARLY = 0.1

/** Time of signing. An invalid annotation, or one that would postpone the renewal, is ignored in favour of the certificate's begin. */
function signedAt(said: string | undefined, from: Date, to: Date): number {
  const [at, begin] = [Date.parse(said ?? ''), from.getTime()]
  return at >= begin && at - begin <= (to.getTime() - begin) * EARLY ? at : begin
}
