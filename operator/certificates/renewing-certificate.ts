import { issueCertificate, type KeyAlgorithm, type KeyPair, renewalTime, stillGood } from './local-ca.ts'

export interface CertificatesDeps {
  readonly ca: KeyPair
  /** Host names and IP addresses of the certificate. */
  readonly names: readonly string[]
  /** Default: elliptic. */
  readonly key?: KeyAlgorithm | undefined
  /** Certificate of an earlier start; reused while it is valid. */
  readonly stored?: KeyPair | undefined
  readonly now?: () => Date
  /** Receives the error of a failed renewal. The renewal is tried again in an hour, and the certificate has a month left. */
  readonly onError?: (error: unknown) => void
}

/** Server certificate that is renewed at two thirds of its lifetime. */
export interface Certificates extends Disposable {
  current(): KeyPair
  /** Calls `handler` with each renewed certificate, for `setSecureContext` of a TLS server. */
  onRenew(handler: (renewed: KeyPair) => void): void
  /** Renews the certificate if it is due. An hourly timer calls this. */
  check(): Promise<void>
}

const HOUR = 3_600_000

export async function createCertificates(deps: CertificatesDeps): Promise<Certificates> {
  const { ca, names, key = 'elliptic', stored, now = () => new Date(), onError = () => undefined } = deps
  const handlers: ((renewed: KeyPair) => void)[] = []
  const request = () => ({ ca, names, key, now: now() })
  let current = stored && stillGood(stored, request()) ? stored : await issueCertificate(request())

  async function check(): Promise<void> {
    if (now() < renewalTime(current.certificate)) return
    current = await issueCertificate(request())
    for (const handler of handlers) handler(current)
  }

  // Checked every hour: a timer holds at most 24.8 days, and stops while the machine sleeps.
  const timer = setInterval(() => void check().catch(onError), HOUR).unref()
  return {
    current: () => current,
    onRenew: (handler) => void handlers.push(handler),
    check,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

export interface AdminCertificateDeps {
  /** CA of the installation, with its key. */
  readonly ca: () => KeyPair | Promise<KeyPair>
  /** Role that the certificate is for: its common name. */
  readonly user: string
  readonly now: () => Date
}

/**
 * Creates the source of the client certificate by which a database server authenticates the operator: from the network, the
 * administrator's password alone is rejected. The certificate is kept in memory, and issued again at two thirds of its lifetime or when the
 * CA changes.
 */
export function createAdminCertificate({ ca, user, now }: AdminCertificateDeps): () => Promise<KeyPair> {
  let current: { readonly pair: KeyPair; readonly authority: string } | undefined

  return async function adminCertificate() {
    const authority = await ca()
    const isGood = current?.authority === authority.certificate && now() < renewalTime(current.pair.certificate)
    if (current && isGood) return current.pair
    const pair = await issueCertificate({ ca: authority, names: [user], now: now(), usage: 'client', subject: user })
    current = { pair, authority: authority.certificate }
    return pair
  }
}

/**
 * Returns the names of the certificate for unknown hosts: hostnames below the domain without a tunnel, and the domain itself. With it a
 * visitor gets an error page instead of a broken connection. The local CA of the installation always signs it: a public CA may not sign a
 * wildcard by HTTP-01 (CA/Browser Forum, Baseline Requirements, section 3.2.2.4.19), and the budget of public certificates is for tunnels.
 * Pure.
 */
export function unknownHostNames(domain: string): readonly string[] {
  // Clients reject a wildcard of a domain without a dot.
  return domain.includes('.') ? [`*.${domain}`, domain] : [domain]
}
