import { createPublicKey, X509Certificate } from 'node:crypto'
import { AcmeError } from './acme-error.ts'

/** Returns the certificate signing request for one name, as DER in base64url (RFC 8555, section 7.4). */
export async function signingRequest(name: string, key: string): Promise<string> {
  const { default: acme } = await import('acme-client')
  const [, csr] = await acme.crypto.createCsr({ altNames: [name] }, key)
  return Buffer.from(csr.toString().replace(/-----[^-]+-----|\s/g, ''), 'base64').toString('base64url')
}

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/**
 * Returns the chain of an issued certificate in PEM, without any other text that the CA has sent.
 * @throws AcmeError `acme_invalid_answer` when the certificate is for another name or key, has expired, or is no PEM
 */
export function checkedChain(
  text: string,
  { name, key, now }: { readonly name: string; readonly key: string; readonly now: Date },
): string {
  const wrong = (why: string) => new AcmeError('acme_invalid_answer', `the certificate authority has issued a certificate ${why}`)
  const blocks = text.match(BLOCK) ?? []
  let leaf: X509Certificate
  try {
    ;[leaf] = blocks.map((block) => new X509Certificate(block)) as [X509Certificate]
  } catch (cause) {
    throw new AcmeError('acme_invalid_answer', 'the certificate authority has sent a certificate that cannot be read', { cause })
  }
  if (blocks.length === 0) throw wrong('that is no PEM')
  if (!isOf(leaf, key)) throw wrong('for another key')
  if (leaf.checkHost(name, { wildcards: false }) === undefined) throw wrong(`that is not for ${name}`)
  if (leaf.validToDate <= now) throw wrong('that has expired; the clock of this machine may be wrong')
  return `${blocks.join('\n')}\n`
}

const isOf = ({ publicKey }: X509Certificate, key: string): boolean => publicKey.equals(createPublicKey(key))

/** Returns the name of a certificate's issuer: organization and common name, at most 253 characters. */
export function issuerOf({ issuer }: X509Certificate): string {
  const part = (name: string) => new RegExp(`^${name}=(.+)$`, 'm').exec(issuer)?.[1]
  return [part('O'), part('CN')]
    .filter((each) => each !== undefined)
    .join(' ')
    .slice(0, 253)
}

/**
 * Returns the identifier of a certificate for its renewal information: key identifier of the issuer and serial number in base64url (RFC 9773,
 * section 4.1). Returns undefined when the certificate does not contain that key identifier.
 */
export async function certificateId(pem: string): Promise<string | undefined> {
  await import('reflect-metadata')
  const { AuthorityKeyIdentifierExtension, X509Certificate: Parsed } = await import('@peculiar/x509')
  const certificate = new Parsed(pem)
  const keyId = certificate.getExtension(AuthorityKeyIdentifierExtension)?.keyId
  const serial = certificate.serialNumber.toUpperCase()
  if (keyId === undefined) return undefined
  // A DER integer with the highest bit set begins with a zero byte.
  const even = serial.length % 2 === 1 ? `0${serial}` : serial
  const bytes = Number.parseInt(even.slice(0, 2), 16) >= 0x80 ? `00${even}` : even
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${Buffer.from(bytes, 'hex').toString('base64url')}`
}
