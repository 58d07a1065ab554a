import type { Condition } from '../../crds/kind.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { type Region, regionWithId } from '../../crds/region.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { CERTIFICATE_EXPIRING, endpointBefore, EndpointReason, TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady, ready, type Decision, withCondition, withoutCondition } from '../../store/conditions.ts'
import type { Key, Store } from '../../store/port.ts'
import { sharedCertificate } from '../../shared/edge-objects.ts'
import { replacing } from '../../shared/merge-patch.ts'
import type { RecordState } from '../acme/dns/record-watch.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { type Issuers, signsFor } from '../tunnel/certificate-issuer.ts'
import { ISSUER_MISSING } from '../tunnel/resources.ts'
import { acmeStatusOf } from './acme-status.ts'
import { createCertificateCopier, expiringSoon, type OwnCertificateStatus } from './own-certificate.ts'
import { createHostKeyring, hostKeysOf } from './host-keys.ts'
import { type EdgeRuntime, type EdgeState } from './runtime.ts'

export interface EndpointReconcilerDeps {
  readonly store: Store
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly regions: Cache<typeof Region>
  /** Tunnels, with the index `endpoint` of tunnel/indexes.ts. */
  readonly tunnels: Cache<typeof Tunnel>
  /** Databases, with the index `endpoint` of dedicated-database/indexes.ts. */
  readonly databases: Pick<Cache<typeof DedicatedDatabase>, 'countByIndex'>
  readonly issuers: Issuers
  readonly runtime: EdgeRuntime
  readonly report: Report
  readonly now: () => Date
}

/** Interval of reading the Secret of `spec.tlsSecretName`, which is not watched. */
const OWN_SECRET_MS = 10_000

/** Creates the reconciler of endpoints: it keeps their host keys and edges, and reports how many tunnels each serves. */
export function createEndpointReconciler(deps: EndpointReconcilerDeps): (key: Key) => Promise<Outcome> {
  const { store, endpoints, regions, tunnels, databases, runtime, report } = deps
  const keyring = createHostKeyring(store)
  const takeOver = createCertificateCopier(deps)
  /** Endpoints without a shared certificate by ACME, whose order is deleted. */
  const orderless = new Set<string>()

  /** Deletes the order for the shared certificate of an endpoint that has none any more. */
  async function dropOrder({ spec, metadata: { name } }: TunnelEndpoint): Promise<void> {
    const isOrdered = spec.issuer === 'acme' && spec.certificates === 'wildcard'
    if (isOrdered) orderless.delete(name)
    else if (!orderless.has(name)) {
      await deps.issuers.acme?.forget(sharedCertificate(name))
      orderless.add(name)
    }
  }

  /** Reports an endpoint whose domain an older one has. It gets no host keys, no edges and no certificate. */
  async function refuse(endpoint: TunnelEndpoint, { metadata: { name } }: TunnelEndpoint): Promise<Outcome> {
    const message = `the older endpoint ${name} has the domain ${endpoint.spec.domain}: delete one of the two`
    await report(TunnelEndpoint, endpoint, notReady(EndpointReason.DomainTaken, message), { readyReplicas: 0 })
    return { result: 'waiting', reason: EndpointReason.DomainTaken }
  }

  return async function reconcileEndpoint(key) {
    const endpoint = endpoints.get(key)
    if (!endpoint || endpoint.metadata.deletionTimestamp !== undefined) {
      keyring.forget(key.name)
      await deps.issuers.acme?.forget(sharedCertificate(key.name))
      await runtime.forget?.(key.name)
      return { result: 'settled', reason: 'Gone' }
    }
    const elder = endpointBefore(endpoint, endpoints.list())
    if (elder) return refuse(endpoint, elder)
    await dropOrder(endpoint)
    const { publicKeys } = await keyring.open(hostKeysOf(endpoint))
    const state = await runtime.ensure(endpoint)
    const { fields, problem } = await acmeStatusOf(endpoint, deps.issuers.acme)
    const certificate = await takeOver(endpoint)
    const decision = decisionOf(endpoint, { regions: regions.list(), issuers: deps.issuers, state, certificate, problem })
    await report(TunnelEndpoint, endpoint, decision, {
      ...fields,
      conditions: alarmsOf(endpoint, certificate, deps.now()),
      certificate: certificate ? replacing(endpoint.status?.certificate, certificate) : null,
      hostKeys: publicKeys,
      readyReplicas: state.ready,
      strangersCertificate: state.strangersCertificate,
      tunnels: tunnels.countByIndex('endpoint', key.name),
      databases: databases.countByIndex('endpoint', key.name),
    })
    const result = decision.status === 'True' ? 'settled' : 'waiting'
    return { result, reason: decision.reason, ...(certificate && { requeueAfterMs: OWN_SECRET_MS }) }
  }
}

/** Returns the conditions beside `Ready`. Pure. */
function alarmsOf(
  { spec, metadata, status }: TunnelEndpoint,
  certificate: OwnCertificateStatus | undefined,
  now: Date,
): readonly Condition[] {
  const expiring = certificate && expiringSoon(certificate, { secretName: spec.tlsSecretName, now })
  if (!expiring) return withoutCondition(status?.conditions, CERTIFICATE_EXPIRING)
  return withCondition(status?.conditions, expiring, { type: CERTIFICATE_EXPIRING, generation: metadata.generation, now })
}

interface Seen {
  readonly regions: readonly Region[]
  readonly issuers: Issuers
  readonly state: EdgeState
  readonly certificate: OwnCertificateStatus | undefined
  /** Why DNS does not have the record of dns-persist-01. */
  readonly problem: RecordState['problem']
}

/** Ready condition of an endpoint. Pure. */
export function decisionOf(endpoint: TunnelEndpoint, { regions, issuers, state, certificate, problem }: Seen): Decision {
  const { spec } = endpoint
  if (!regionWithId(regions, spec.region)) {
    return notReady(EndpointReason.UnknownRegion, `there is no region ${spec.region}`)
  }
  if (!signsFor(issuers, endpoint)) return ISSUER_MISSING
  if (certificate && certificate.status !== 'valid') {
    return notReady(EndpointReason.CertificateUnusable, certificate.lastError ?? 'the certificate has expired')
  }
  const unreachable = whyUnreachable(state)
  if (unreachable) return unreachable
  if (problem) return notReady(problem.reason, problem.message)
  return ready(EndpointReason.Serving, `${state.ready} edges serve ${spec.domain}`)
}

function whyUnreachable({ ready: edges, message, isFailing, addressPending }: EdgeState): Decision | undefined {
  if (edges === 0)
    return notReady(isFailing ? EndpointReason.EdgesFailing : EndpointReason.Starting, message ?? 'no edge answers yet')
  return addressPending === undefined ? undefined : notReady(EndpointReason.AddressPending, addressPending)
}
