import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JSONWebKeySet, type JWK } from 'jose'

const ALGORITHM = 'EdDSA'

/** A new private Ed25519 key with its thumbprint as `kid`. Who calls this keeps it, and keeps it secret. */
export async function generateIssuerKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' }
}

/** The public half of a key of {@link generateIssuerKey}, as it may be published. */
export function publicKeySet({ kty, crv, x, kid, alg, use }: JWK): JSONWebKeySet {
  return { keys: [{ kty, crv, x, kid, alg, use } as JWK] }
}
