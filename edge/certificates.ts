import { setTimeout as delay } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { HOSTNAME } from '../crds/tunnel.ts'
import { ownCertificate, sharedCertificate, unknownHostsSecret } from '../shared/edge-objects.ts'
import { createPems, type Pem, type PemStore } from './pems.ts'
import type { ListedRoutes } from './route.ts'
import type { Store } from '../store/port.ts'

export interface CertificatesDeps {
  readonly store: Pick<Store, 'get'>
  /** Name of the TunnelEndpoint. */
  readonly endpoint: string
  readonly routes: ListedRoutes
  /** Whether all tunnels of the endpoint share one certificate. */
  readonly isWildcard: () => boolean
  /** Storage of certificates for a start without the API. Without it, no certificate is fetched before a handshake needs it. */
  readonly kept?: PemStore | undefined
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Maximum wait of a handshake for a certificate that the Tunnel's status announces: this edge may get permission to read it later than
 * others.
 */
const SOON_MS = 2_500
const AGAIN_MS = 100

export interface Certificates extends Disposable {
  /**
   * Returns the TLS context for a server name. Undefined: no certificate exists, also after a wait; the host is unknown.
   * @throws Error when the certificate is not usable
   */
  contextFor(serverName: string): Promise<SecureContext | undefined>
}

/**
 * Creates the endpoint's certificates. Each is fetched by name when a handshake needs it: an edge may read the certificates of its
 * tunnels but list none. A certificate is fetched again when the status of its Tunnel reports a new one. `onChange` is called with each
 * server name whose certificate changes.
 */
export function createCertificates(deps: CertificatesDeps, onChange: (serverName: string) => void): Certificates {
  const { endpoint, routes, isWildcard, kept } = deps
  const suffix = `.${routes.domain}`
  const shared = sharedCertificate(endpoint)
  const pems = createPems(deps)
  const nameOf = (hostname: string) => (isWildcard() ? shared : ownCertificate(hostname))

  /**
   * Returns the names of the Secrets that may hold the certificate, the likelier first: the endpoint may have changed between wildcard
   * and own certificates a moment ago.
   */
  function candidates(hostname: string): readonly string[] {
    const own = routes.get(hostname) ? [ownCertificate(hostname)] : []
    return isWildcard() ? [shared, ...own] : own
  }

  async function pemFor(hostname: string): Promise<Pem | undefined> {
    for (const name of candidates(hostname)) {
      const pem = await pems.get(name, routes.get(hostname)?.certifiedAt ?? '')
      if (pem) return pem
    }
    return undefined
  }

  function refresh(hostname: string): void {
    const route = routes.get(hostname)
    const serverName = hostname + suffix
    if (!route) {
      pems.forget(ownCertificate(hostname))
      onChange(serverName)
      return
    }
    const name = nameOf(hostname)
    if (route.certifiedAt === undefined || pems.isCurrent(name, route.certifiedAt)) return
    onChange(serverName)
    // Without storage, a certificate that no handshake has needed yet is not fetched.
    if (kept || pems.has(name)) prefetch(hostname)
  }

  function prefetch(hostname: string): void {
    const obtainedAt = routes.get(hostname)?.certifiedAt
    if (obtainedAt === undefined || pems.isCurrent(nameOf(hostname), obtainedAt)) return
    pems.fetchInBackground(nameOf(hostname), obtainedAt, () => onChange(hostname + suffix))
  }

  const stopWatching = routes.onChange(refresh)
  const used = new Set([shared, unknownHostsSecret(endpoint), ...[...routes.hostnames()].map(ownCertificate)])
  // Drops certificates of tunnels that were deleted while no edge was running.
  for (const name of pems.names()) if (!used.has(name)) pems.forget(name)
  if (kept) for (const hostname of routes.hostnames()) prefetch(hostname)

  return {
    async contextFor(serverName) {
      const hostname = serverName.endsWith(suffix) ? serverName.slice(0, -suffix.length) : ''
      if (!HOSTNAME.test(hostname)) return undefined
      const until = performance.now() + SOON_MS
      let pem = await pemFor(hostname)
      while (!pem && routes.get(hostname)?.certifiedAt !== undefined && performance.now() < until) {
        await delay(AGAIN_MS)
        pem = await pemFor(hostname)
      }
      return pem && createSecureContext({ cert: pem.certificate, key: pem.key, minVersion: 'TLSv1.2' })
    },
    [Symbol.dispose]() {
      stopWatching()
      pems[Symbol.dispose]()
    },
  }
}
