import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'

/** OpenID provider of a company with its own CA, reduced to what a verifier of tokens needs. */
export interface IdentityProvider extends AsyncDisposable {
  readonly url: string
  /** PEM of the CA of the provider's certificate. */
  readonly ca: string
  /** Signs a token that is valid for one hour. */
  token(claims: { readonly subject: string; readonly audience: string; readonly groups?: readonly string[] }): Promise<string>
}

const ALGORITHM = 'RS256'

/** Starts the provider. @param address address of this machine that the cluster's pods reach */
export async function startIdentityProvider(address: string): Promise<IdentityProvider> {
  const ca = await createCa(new Date())
  const certificate = await issueCertificate({ ca, names: [address], now: new Date() })
  const { publicKey, privateKey } = await generateKeyPair(ALGORITHM)
  const header = { alg: ALGORITHM, kid: 'of-the-company' }
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), ...header, use: 'sig' }] }

  const server = createServer({ cert: certificate.certificate, key: certificate.key }, (req, res) => {
    const documents: Readonly<Record<string, object>> = {
      '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/keys` },
      '/keys': jwks,
    }
    const found = documents[req.url ?? '']
    res.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(found ?? {}))
  })
  await once(server.listen(0, address), 'listening')
  const url = `https://${address}:${(server.address() as AddressInfo).port}`

  return {
    url,
    ca: ca.certificate,
    token: ({ subject, audience, groups }) =>
      new SignJWT(groups ? { groups } : {})
        .setProtectedHeader(header)
        .setIssuer(url)
        .setSubject(subject)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey),
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
