import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JSONWebKeySet, type JWK } from 'jose'

const ALGORITHM = 'EdDSA'

/** Generates a private Ed25519 key with its thumbprint as `kid`. The caller stores it as a secret. */
export async function generateIssuerKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' }
}

/** Public half of a key of {@link generateIssuerKey}, for publication. */
export function publicKeySet({ kty, crv, x, kid, alg, use }: JWK): JSONWebKeySet {
  return { keys: [{ kty, crv, x, kid, alg, use } as JWK] }
}
