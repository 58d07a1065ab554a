import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'

/** A TLS context for all names below the domain, which nobody has signed. */
export function selfSigned(domain: string): SecureContext {
  const folder = mkdtempSync(join(tmpdir(), 'self-signed-'))
  try {
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
    const of = ['-subj', `/CN=${domain}`, '-addext', `subjectAltName=DNS:*.${domain},DNS:${domain}`]
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...made, ...of], { stdio: 'ignore' })
    return createSecureContext({ key: readFileSync(key), cert: readFileSync(cert) })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
