import { createPrivateKey, type webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type * as X509 from '@peculiar/x509'

/** Certificate and its private key, both PEM; the key is PKCS #8. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', publicExponent: Uint8Array.of(1, 0, 1), modulusLength: 2048 }

/** Algorithm of a certificate's key. `rsa` is for servers with old TLS libraries, which complete no handshake with the elliptic key. */
export type KeyAlgorithm = 'elliptic' | 'rsa'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const CA_LIFETIME = 3_653 * DAY
/** At most 90 days: a leaked key is useful for a short time only, and renewal is exercised. */
const SERVER_LIFETIME = 90 * DAY

/**
 * Creates the certificate authority of one installation: ECDSA P-256, ten years. It may sign certificates of servers but no other CA
 * (RFC 5280, sections 4.2.1.3 and 4.2.1.9). The caller stores both PEMs; the key is a secret.
 */
export async function createCa(now: Date): Promise<KeyPair> {
  const x509 = await loadX509()
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const id = Buffer.from(crypto.getRandomValues(new Uint8Array(4))).toString('hex')
  const usage = x509.KeyUsageFlags
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // The name differs between installations: clients that trust two of them must distinguish them.
    name: `CN=Mooring local CA ${id}`,
    serialNumber: serialNumber(),
    notBefore: new Date(now.getTime() - HOUR),
    notAfter: new Date(now.getTime() + CA_LIFETIME),
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usage.keyCertSign | usage.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pemOf(certificate), key: await keyPem(keys.privateKey) }
}

export interface IssueRequest {
  readonly ca: KeyPair
  /** Host names and IP addresses of the server; at least one. */
  readonly names: readonly string[]
  readonly now: Date
  /** Role of the holder in a connection; `peer` means both. Default `server`. */
  readonly usage?: 'server' | 'client' | 'peer'
  /** Default `elliptic`. */
  readonly key?: KeyAlgorithm | undefined
  /** Common name. Default: a constant without meaning. */
  readonly subject?: string
}

/** Issues a certificate with a new key, valid for 90 days but not longer than its CA. */
export async function issueCertificate({
  ca,
  names,
  now,
  usage = 'server',
  key = 'elliptic',
  subject = 'Mooring',
}: IssueRequest): Promise<KeyPair> {
  const x509 = await loadX509()
  const issuer = new x509.X509Certificate(ca.certificate)
  const signingKey = await crypto.subtle.importKey('pkcs8', derOf(ca.key), ALGORITHM, false, ['sign'])
  const keys = await crypto.subtle.generateKey(key === 'rsa' ? RSA : ALGORITHM, true, ['sign', 'verify'])
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage
  const usages = { server: [serverAuth], client: [clientAuth], peer: [serverAuth, clientAuth] }
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [subject] }],
    issuer: issuer.subjectName,
    serialNumber: serialNumber(),
    notBefore: new Date(Math.max(issuer.notBefore.getTime(), now.getTime() - HOUR)),
    notAfter: new Date(Math.min(issuer.notAfter.getTime(), now.getTime() + SERVER_LIFETIME)),
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages[usage]),
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value }))),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pemOf(certificate), key: await keyPem(keys.privateKey) }
}

/** Whether the two values are a certificate and its key: a Secret edited by hand may hold anything. */
export function isPair({ certificate, key }: KeyPair): boolean {
  try {
    return isKeyOf(new X509Certificate(certificate), key)
  } catch {
    return false
  }
}

/** Whether `key` is the key of the certificate. @throws Error when `key` is not a private key */
export const isKeyOf = (certificate: X509Certificate, key: string): boolean => certificate.checkPrivateKey(createPrivateKey(key))

/** Time at which two thirds of a certificate's lifetime have passed. */
export const renewalTime = (certificate: string): Date => renewalOf(new X509Certificate(certificate))

function renewalOf({ validFromDate, validToDate }: X509Certificate): Date {
  const from = validFromDate.getTime()
  return new Date(from + ((validToDate.getTime() - from) * 2) / 3)
}

/** Whether `stored` may stay in use: signed by this CA, valid for every name, with a key of this algorithm, and not yet due for renewal. */
export function stillGood(stored: KeyPair, { ca, names, now, key = 'elliptic' }: IssueRequest): boolean {
  const certificate = new X509Certificate(stored.certificate)
  const authority = new X509Certificate(ca.certificate)
  const isOfKind = certificate.publicKey.asymmetricKeyType === (key === 'rsa' ? 'rsa' : 'ec')
  return isOfKind && isIssued(certificate, { authority, names, now }) && now < renewalOf(certificate)
}

/** Whether a certificate is one that the CA would issue, and has become valid. It may have expired. */
export function isIssued(
  certificate: X509Certificate,
  { authority, names, now }: Pick<IssueRequest, 'names' | 'now'> & { readonly authority: X509Certificate },
): boolean {
  return (
    certificate.checkIssued(authority) &&
    certificate.verify(authority.publicKey) &&
    names.every((name) => isFor(certificate, name)) &&
    now >= certificate.validFromDate
  )
}

function isFor(certificate: X509Certificate, name: string): boolean {
  if (isIP(name)) return certificate.checkIP(name) !== undefined
  return certificate.checkHost(name.replace(/^\*/, 'any')) !== undefined
}

/** Loads the X.509 library, which costs 20 MB and 160 ms: only processes that issue certificates load it. */
async function loadX509(): Promise<typeof X509> {
  // The library's dependency injection needs this polyfill loaded first.
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

/** Serial number of 16 bytes, positive, without a leading zero byte (RFC 5280, section 4.1.2.2). */
function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40
  return Buffer.from(bytes).toString('hex')
}

const pemOf = (certificate: X509.X509Certificate): string => `${certificate.toString('pem')}\n`

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${(der.match(/.{1,64}/g) ?? []).join('\n')}\n-----END PRIVATE KEY-----\n`
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64'))
}
