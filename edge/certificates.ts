import { setTimeout as delay } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { HOSTNAME } from '../crds/tunnel.ts'
import { ownCertificate, sharedCertificate, unknownHostsSecret } from '../shared/edge-objects.ts'
import { createPems } from './pems.ts'
import type { Pem, PemStore } from './pem-store.ts'
import type { ListedRoutes } from './route.ts'
import type { Store } from '../store/port.ts'

export interface CertificatesDeps {
  readonly store: Pick<Store, 'get'>
  /** Name of the TunnelEndpoint. */
  readonly endpoint: string
  readonly routes: ListedRoutes
  /** Whether all tunnels of the endpoint share one certificate. */
  readonly isWildcard: () => boolean
  /** Where certificates are kept for a start without the API; nowhere, when absent, and then none is fetched before it is asked for. */
  readonly kept?: PemStore | undefined
  readonly log: Pick<Logger, 'warn'>
}

/** A certificate that its Tunnel speaks of is waited for: this edge may be allowed to read it a moment later than others. */
const SOON_MS = 2_500
const AGAIN_MS = 100

export interface Certificates extends Disposable {
  /**
   * What a handshake for this name is answered with; undefined when there is no certificate, not even after it was waited for: it is a
   * stranger's then. @throws Error for one that cannot be used
   */
  contextFor(serverName: string): Promise<SecureContext | undefined>
}

/**
 * The endpoint's certificates, fetched by name when they are asked for: an edge may read those of its tunnels and list none. One whose
 * Tunnel says that it was obtained anew is fetched again. `onChange` is told the server names that are answered anew from then on.
 */
export function createCertificates(deps: CertificatesDeps, onChange: (serverName: string) => void): Certificates {
  const { endpoint, routes, isWildcard, kept } = deps
  const suffix = `.${routes.domain}`
  const shared = sharedCertificate(endpoint)
  const pems = createPems(deps)
  const nameOf = (hostname: string) => (isWildcard() ? shared : ownCertificate(hostname))

  /** Which may be it, the likelier first: the endpoint may have gone over from one kind to the other a moment ago. */
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
    // Else nobody has asked for it yet, and there is nothing to keep it for.
    if (kept || pems.has(name)) prefetch(hostname)
  }

  function prefetch(hostname: string): void {
    const obtainedAt = routes.get(hostname)?.certifiedAt
    if (obtainedAt === undefined || pems.isCurrent(nameOf(hostname), obtainedAt)) return
    pems.fetchInBackground(nameOf(hostname), obtainedAt, () => onChange(hostname + suffix))
  }

  const stopWatching = routes.onChange(refresh)
  const used = new Set([shared, unknownHostsSecret(endpoint), ...[...routes.hostnames()].map(ownCertificate)])
  // Of tunnels that went while no edge was there to see it.
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
