import { createHash } from 'node:crypto'

/** Protocol name of the challenge tls-alpn-01 (RFC 8737, section 6.2). */
export const ACME_TLS = 'acme-tls/1'
/** Object identifier of the extension `acmeIdentifier` (RFC 8737, section 6.1). */
const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31'
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

/** Value of the extension `acmeIdentifier`: a DER octet string with the SHA-256 of the key authorization. */
const identifierOf = (keyAuthorization: string): Buffer =>
  Buffer.concat([Uint8Array.of(0x04, 0x20), createHash('sha256').update(keyAuthorization).digest()])

async function loadX509() {
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

/**
 * Makes the self-signed certificate that proves the control of a host (RFC 8737, section 3), with a new key.
 * @returns certificate and key, PEM
 */
export async function validationCertificate(host: string, keyAuthorization: string): Promise<{ cert: string; key: string }> {
  const x509 = await loadX509()
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const now = Date.now()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=Mooring',
    serialNumber: '01',
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + DAY_MS),
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
      new x509.Extension(ACME_IDENTIFIER, true, identifierOf(keyAuthorization)),
    ],
  })
  const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  return { cert: certificate.toString('pem'), key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n` }
}

/** Whether a certificate (DER) proves the control of a host by this key authorization. False when it cannot be read. */
export async function isValidation(der: Buffer, host: string, keyAuthorization: string): Promise<boolean> {
  const x509 = await loadX509()
  try {
    const certificate = new x509.X509Certificate(Uint8Array.from(der))
    const extension = certificate.getExtension(ACME_IDENTIFIER)
    const names = certificate.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON() ?? []
    const isAlone = names.length === 1 && names[0]?.type === 'dns' && names[0].value === host
    return isAlone && extension?.critical === true && identifierOf(keyAuthorization).equals(Buffer.from(extension.value))
  } catch {
    return false
  }
}
