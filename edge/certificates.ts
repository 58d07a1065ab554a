import { createSecureContext, type SecureContext } from 'node:tls'
import type { Secret } from '../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../crds/names.ts'
import type { Cache } from '../store/cache.ts'

export interface CertificatesDeps {
  /** Secrets of mooring-system, those with certificates of this endpoint among them. */
  readonly secrets: Cache<typeof Secret>
  /** Name of the TunnelEndpoint. */
  readonly endpoint: string
  readonly domain: string
}

export interface Certificates extends Disposable {
  /** What a handshake for this name is answered with; undefined when there is no certificate. @throws Error for one that cannot be used */
  contextFor(serverName: string): Promise<SecureContext | undefined>
}

/** The endpoint's certificates, as their Secrets have them. `onChange` is told the server names that are answered anew from then on. */
export function createCertificates(deps: CertificatesDeps, onChange: (serverName: string) => void): Certificates {
  const { secrets, endpoint, domain } = deps
  const suffix = `.${domain}`

  /** Its own, else the one that all tunnels of the endpoint share. */
  function secretOf(serverName: string): Secret | undefined {
    if (!serverName.endsWith(suffix)) return undefined
    const names = [`tunnel-${serverName.slice(0, -suffix.length)}-certificate`, `endpoint-${endpoint}-certificate`]
    return names
      .map((name) => secrets.get({ namespace: SYSTEM_NAMESPACE, name }))
      .find((secret) => secret?.metadata.labels?.[labels.endpoint] === endpoint)
  }

  const unsubscribe = secrets.onChange(({ name }) => {
    const [, hostname] = /^tunnel-([0-9a-f]{16})-certificate$/.exec(name) ?? []
    if (hostname !== undefined) onChange(hostname + suffix)
  })

  return {
    async contextFor(serverName) {
      const secret = secretOf(serverName)
      return secret && createSecureContext({ cert: pem(secret, 'tls.crt'), key: pem(secret, 'tls.key'), minVersion: 'TLSv1.2' })
    },
    [Symbol.dispose]: unsubscribe,
  }
}

const pem = ({ data }: Secret, key: string): string => Buffer.from(data[key] ?? '', 'base64').toString('utf8')
