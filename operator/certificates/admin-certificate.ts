import { X509Certificate } from 'node:crypto'
import { issueCertificate, type KeyPair, renewalTime } from './local-ca.ts'

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

/** Common name of a certificate in PEM. */
export const commonNameOf = (certificate: string): string | undefined =>
  /^CN=(.*)$/m.exec(new X509Certificate(certificate).subject)?.[1]
