import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'

/** Returns a TLS context with a self-signed certificate for all names below the domain. */
export const selfSigned = (domain: string): SecureContext => createSecureContext(selfSignedPem(domain))

/** Returns the same certificate as PEM. A client that trusts it as a CA accepts it. */
export function selfSignedPem(domain: string): { readonly key: string; readonly cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'self-signed-'))
  try {
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
    const of = ['-subj', `/CN=${domain}`, '-addext', `subjectAltName=DNS:*.${domain},DNS:${domain}`]
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...made, ...of], { stdio: 'ignore' })
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
