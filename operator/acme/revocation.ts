import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import type { Account } from './account.ts'
import { AcmeError } from './acme-error.ts'

/** Reason cessationOfOperation: the name of the certificate is not in use any more (RFC 5280, section 5.3.1). */
const CESSATION_OF_OPERATION = 5

/**
 * Revokes a certificate (PEM) as the account that has ordered it (RFC 8555, section 7.6). Succeeds for a certificate that is revoked
 * already. The key of the certificate does not sign the request: some CAs would then record that the key was compromised.
 * @throws AcmeError when the CA rejects the revocation or cannot be reached
 */
export async function revoke({ client }: Account, certificate: string): Promise<void> {
  const { revokeCert } = await client.directory()
  if (revokeCert === undefined) throw new AcmeError('acme_rejected', 'the certificate authority revokes no certificates')
  const payload = { certificate: new X509Certificate(certificate).raw.toString('base64url'), reason: CESSATION_OF_OPERATION }
  try {
    await client.post(revokeCert, payload, z.unknown())
  } catch (error) {
    if (error instanceof AcmeError && error.type === 'alreadyRevoked') return
    throw error
  }
}
