import { X509Certificate } from 'node:crypto'
import { issueCertificate, type KeyPair, renewalTime } from './local-ca.ts'

export interface AdminCertificateDeps {
  /** The installation's authority, with its key. */
  readonly ca: () => KeyPair | Promise<KeyPair>
  /** Role that it is for: the common name. */
  readonly user: string
  readonly now: () => Date
}

/**
 * Client certificate by which a database server knows the operator: its administrator's password alone lets nobody in from the network.
 * Kept in memory; issued again when it is due for renewal, or the authority is another.
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

/** Common name of a certificate, PEM. */
export const commonNameOf = (certificate: string): string | undefined =>
  /^CN=(.*)$/m.exec(new X509Certificate(certificate).subject)?.[1]
