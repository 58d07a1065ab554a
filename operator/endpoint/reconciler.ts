import type { Region } from '../../crds/region.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { EndpointReason, TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady, ready, type Decision } from '../../store/conditions.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { type Issuers, signsFor } from '../tunnel/certificate-issuer.ts'
import { ISSUER_MISSING } from '../tunnel/resources.ts'
import { createHostKeyring } from './host-keys.ts'
import { ownersOf, type EdgeRuntime, type EdgeState } from './runtime.ts'

export interface EndpointReconcilerDeps {
  readonly store: Store
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly regions: Cache<typeof Region>
  /** Tunnels, with the index `endpoint` of tunnel/indexes.ts. */
  readonly tunnels: Cache<typeof Tunnel>
  readonly issuers: Issuers
  readonly runtime: EdgeRuntime
  readonly report: Report
}

/** Creates the reconciler of endpoints: it keeps their host keys and edges, and reports how many tunnels each serves. */
export function createEndpointReconciler(deps: EndpointReconcilerDeps): (key: Key) => Promise<Outcome> {
  const { store, endpoints, regions, tunnels, runtime, report } = deps
  const keyring = createHostKeyring(store)
  return async function reconcileEndpoint(key) {
    const endpoint = endpoints.get(key)
    if (!endpoint || endpoint.metadata.deletionTimestamp !== undefined) {
      keyring.forget(key.name)
      await runtime.forget?.(key.name)
      return { result: 'settled', reason: 'Gone' }
    }
    const { publicKeys } = await keyring.open({ name: endpoint.metadata.name, owners: ownersOf(endpoint) })
    const state = await runtime.ensure(endpoint)
    const decision = decisionOf(endpoint, { regions: regions.list(), issuers: deps.issuers, state })
    await report(TunnelEndpoint, endpoint, decision, {
      hostKeys: publicKeys,
      readyReplicas: state.ready,
      strangersCertificate: state.strangersCertificate,
      tunnels: tunnels.countByIndex('endpoint', key.name),
    })
    return { result: decision.status === 'True' ? 'settled' : 'waiting', reason: decision.reason }
  }
}

interface Seen {
  readonly regions: readonly Region[]
  readonly issuers: Issuers
  readonly state: EdgeState
}

/** Ready condition of an endpoint. Pure. */
function decisionOf(endpoint: TunnelEndpoint, { regions, issuers, state }: Seen): Decision {
  const { spec } = endpoint
  const { ready: edges, ...why } = state
  if (!regions.some((region) => region.spec.id === spec.region)) {
    return notReady(EndpointReason.UnknownRegion, `there is no region ${spec.region}`)
  }
  if (!signsFor(issuers, endpoint)) return ISSUER_MISSING
  if (edges === 0) {
    return notReady(why.isFailing ? EndpointReason.EdgesFailing : EndpointReason.Starting, why.message ?? 'no edge answers yet')
  }
  return ready(EndpointReason.Serving, `${edges} edges serve ${spec.domain}`)
}
