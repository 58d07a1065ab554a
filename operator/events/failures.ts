import type { Kind, Resource } from '../../crds/kind.ts'
import { ServerReason, TRANSACTION_IDS_LOW } from '../../crds/database-server.ts'
import { DatabaseReason } from '../../crds/dedicated-database.ts'
import { RegionReason } from '../../crds/region.ts'
import { InstanceReason } from '../../crds/shared-instance.ts'
import { TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import { ADDRESSES_USABLE, KEYS_USABLE, type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { CERTIFICATE_EXPIRING, EndpointReason } from '../../crds/tunnel-endpoint.ts'
import { WebhookReason } from '../../crds/tunnel-webhook.ts'
import type { Cache } from '../../store/cache.ts'
import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import { type Key, StoreCode } from '../../store/port.ts'
import { ISSUER_MISSING } from '../tunnel/resources.ts'
import type { Events, Failure } from './events.ts'
import { MooringError } from '../../shared/errors.ts'

/** Reasons of `Ready` that need an action of a person; the other reasons are steps towards ready. */
const FAILURES: ReadonlySet<string> = new Set([
  InstanceReason.QuotaExceeded,
  InstanceReason.ServerUnavailable,
  InstanceReason.UnknownRegion,
  InstanceReason.UnsupportedMotor,
  InstanceReason.TemplateNotFound,
  InstanceReason.TemplateNotCopyable,
  InstanceReason.SizeExceeded,
  InstanceReason.Suspended,
  InstanceReason.DatabaseMissing,
  InstanceReason.CleanupBlocked,
  DatabaseReason.UnknownPlan,
  DatabaseReason.PlanWithoutMotor,
  DatabaseReason.StorageShrinks,
  DatabaseReason.StorageNotExpandable,
  ServerReason.MotorUnavailable,
  ServerReason.Crashed,
  ServerReason.Unsafe,
  TenantNamespaceReason.NamespaceTaken,
  TunnelReason.QuotaExceeded,
  TunnelReason.UnknownRegion,
  TunnelReason.NoActiveEndpoint,
  TunnelReason.EndpointMissing,
  TunnelReason.EndpointNotServed,
  TunnelReason.RevokingCertificate,
  TunnelReason.CertificateNotRevoked,
  WebhookReason.ReceiverGone,
  WebhookReason.TooManyFailures,
  WebhookReason.TooManyWebhooks,
  WebhookReason.AddressRefused,
  WebhookReason.SecretNameTaken,
  RegionReason.IdTaken,
  EndpointReason.UnknownRegion,
  EndpointReason.DomainTaken,
  EndpointReason.EdgesFailing,
  EndpointReason.CertificateUnusable,
  EndpointReason.DnsRecordMissing,
  EndpointReason.AccountMissing,
  ISSUER_MISSING.reason,
])

/** Reason of the event about a certificate that could not be obtained. The tunnel stays ready while its former certificate is valid. */
const CERTIFICATE_FAILED = 'CertificateFailed'

/** Condition types that are present only while something is wrong. */
const ALARMS = [KEYS_USABLE, ADDRESSES_USABLE, TRANSACTION_IDS_LOW, CERTIFICATE_EXPIRING]

type ConditionFailure = Pick<Failure, 'reason' | 'note'>

/** Failures in an object's status. Pure. */
export function failuresOf(object: Resource<Kind>): readonly ConditionFailure[] {
  const alarms = ALARMS.map((type) => conditionOf(object as Conditioned, type)).filter((condition) => condition !== undefined)
  const ready = whyNotReady(object)
  return [...(ready ? [ready] : []), ...alarms.map(({ reason, message }) => ({ reason, note: message }))]
}

function whyNotReady(object: Resource<Kind>): ConditionFailure | undefined {
  const ready = conditionOf(object as Conditioned, 'Ready')
  if (ready?.status === 'False' && FAILURES.has(ready.reason)) return { reason: ready.reason, note: ready.message }
  const { lastError } = (object as Partial<Tunnel>).status?.certificate ?? {}
  if (lastError === undefined) return undefined
  return { reason: CERTIFICATE_FAILED, note: `its certificate could not be obtained: ${lastError}` }
}

/**
 * Reports each new failure in a status once. Failures present at the start were reported before it. Call it once the cache has synced.
 * @returns a function that unsubscribes
 */
export function reportFailures(cache: Cache<Kind>, events: Events): () => void {
  const reported = new Map<string, ReadonlySet<string>>()
  const idOf = ({ namespace = '', name }: Key) => `${namespace}/${name}`

  /** @returns failures of the object that were not reported yet */
  function note(object: Resource<Kind>): readonly ConditionFailure[] {
    const id = idOf(object.metadata)
    const before = reported.get(id)
    const now = new Map(failuresOf(object).map((failure) => [JSON.stringify([object.metadata.uid, failure]), failure]))
    if (now.size === 0) reported.delete(id)
    else reported.set(id, new Set(now.keys()))
    return [...now].flatMap(([text, failure]) => (before?.has(text) ? [] : [failure]))
  }

  for (const object of cache.list()) note(object)
  return cache.onChange((key) => {
    const object = cache.get(key)
    if (object) for (const failure of note(object)) events.failure({ kind: cache.kind, metadata: object.metadata, ...failure })
    else reported.delete(idOf(key))
  })
}

/** Calls {@link reportFailures} when the cache has synced. @returns a function that stops it, before or after that */
export function reportFailuresOnceSynced(cache: Cache<Kind>, events: Events): () => void {
  let unsubscribe: (() => void) | undefined
  let stopped = false
  void cache.synced().then(() => {
    if (!stopped) unsubscribe = reportFailures(cache, events)
  })
  return () => {
    stopped = true
    unsubscribe?.()
  }
}

/** Reason of the event about a reconcile that threw. */
const RECONCILE_FAILED = 'ReconcileFailed'

/** Creates a handler that reports the error of a failed reconcile of an object of `cache`. Write conflicts are not reported. */
export function reporterOf(events: Events, cache: Cache<Kind>): (key: Key, error: unknown) => void {
  return function report(key, error) {
    const object = cache.get(key)
    if (!object || (error instanceof MooringError && error.code === StoreCode.conflict)) return
    // Foreign errors may quote their input, a password included.
    const note =
      error instanceof MooringError ? `${error.code}: ${error.message}` : 'unexpected error: see the log of the operator'
    events.failure({ kind: cache.kind, metadata: object.metadata, reason: RECONCILE_FAILED, note })
  }
}
