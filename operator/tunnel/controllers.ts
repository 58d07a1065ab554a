import type { Region } from '../../crds/region.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import { createEndpointReconciler } from '../endpoint/reconciler.ts'
import type { EdgeRuntime } from '../endpoint/runtime.ts'
import type { Report } from '../reporter.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { changesOf, eventsOf, laterThan, objectsOf, specChangesOf } from '../runtime/source.ts'
import type { Issuers } from './certificate-issuer.ts'
import { ofTunnel } from './indexes.ts'
import { createPasswordReconciler } from './password.ts'
import { createTunnelReconciler } from './reconciler.ts'

export interface TunnelControllersDeps {
  readonly store: Store
  readonly regions: Cache<typeof Region>
  readonly endpoints: Cache<typeof TunnelEndpoint>
  /** With the indexes of indexes.ts, as the next. */
  readonly tunnels: Cache<typeof Tunnel>
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly issuers: Issuers
  readonly runtime: EdgeRuntime
  readonly report: Report
  readonly now: () => Date
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources'>) => Controller
}

/** How many tunnels an endpoint has is for people and for the next choice, which counts by itself: no write for each. */
const COUNT_AFTER_MS = 2_000
/** Some that come together are let in by one write. */
const ADMIT_AFTER_MS = 100

/** Tunnels, their passwords, and the endpoints that serve them. */
export function createTunnelControllers(deps: TunnelControllersDeps): readonly Controller[] {
  const { regions, endpoints, tunnels, tunnelPasswords, runtime, controller } = deps

  /** Tunnels that had no endpoint to be assigned to, or whose endpoint this is. */
  const aroundEndpoint = ({ name }: Key): readonly Key[] => [...tunnels.byIndex('endpoint', name).map(keyOf), ...waiting()]
  const waiting = (): readonly Key[] =>
    regions.list().flatMap(({ spec }) => tunnels.byIndex('waiting', String(spec.regionId)).map(keyOf))
  const endpointOf = (key: Key): readonly Key[] => {
    const tunnel = tunnels.get(key)
    // Of one that is gone nobody knows any more where it was.
    if (!tunnel) return endpoints.list().map(keyOf)
    return tunnel.status?.endpointRef ? [{ name: tunnel.status.endpointRef.name }] : []
  }
  const passwordsOf = ({ namespace, name }: Key): readonly Key[] =>
    tunnelPasswords.byIndex('tunnel', ofTunnel(namespace, name)).map(keyOf)

  return [
    controller({
      name: 'tunnel-endpoint',
      concurrency: 1,
      reconcile: createEndpointReconciler(deps),
      sources: [
        objectsOf(endpoints),
        changesOf(regions, () => endpoints.list().map(keyOf)),
        laterThan(changesOf(tunnels, endpointOf), COUNT_AFTER_MS),
        eventsOf((enqueue) => runtime.onChange((name) => enqueue({ name }))),
      ],
    }),
    controller({
      name: 'tunnel-admission',
      concurrency: 1,
      async reconcile({ name }) {
        await runtime.tunnelsChanged?.(name)
        return { verdict: 'settled', reason: 'TunnelsAdmitted' }
      },
      sources: [laterThan(changesOf(tunnels, endpointOf), ADMIT_AFTER_MS)],
    }),
    controller({
      name: 'tunnel',
      concurrency: 8,
      reconcile: createTunnelReconciler(deps),
      sources: [objectsOf(tunnels), specChangesOf(endpoints, aroundEndpoint), changesOf(regions, waiting)],
    }),
    controller({
      name: 'tunnel-password',
      concurrency: 2,
      reconcile: createPasswordReconciler({ ...deps, passwords: tunnelPasswords }),
      sources: [objectsOf(tunnelPasswords), changesOf(tunnels, passwordsOf)],
    }),
  ]
}
