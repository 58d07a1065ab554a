import type { Kind, Resource } from '../../crds/kind.ts'
import { ServerReason } from '../../crds/database-server.ts'
import { InstanceReason } from '../../crds/shared-instance.ts'
import { TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import { KEYS_USABLE, type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { EndpointReason } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import { ISSUER_MISSING } from '../tunnel/issuer-missing.ts'
import type { Events } from './events.ts'

/** Reasons of `Ready` that somebody has to do something about; the others are steps on a way. */
const FAILURES: ReadonlySet<string> = new Set([
  InstanceReason.QuotaExceeded,
  InstanceReason.ServerUnavailable,
  InstanceReason.UnknownRegion,
  InstanceReason.UnsupportedMotor,
  InstanceReason.TemplateNotFound,
  InstanceReason.SizeExceeded,
  InstanceReason.DatabaseMissing,
  InstanceReason.CleanupBlocked,
  ServerReason.MotorUnavailable,
  ServerReason.Crashed,
  TenantNamespaceReason.NamespaceTaken,
  TunnelReason.QuotaExceeded,
  TunnelReason.UnknownRegion,
  TunnelReason.NoActiveEndpoint,
  TunnelReason.EndpointMissing,
  TunnelReason.EndpointNotServed,
  EndpointReason.UnknownRegion,
  EndpointReason.EdgesFailing,
  ISSUER_MISSING.reason,
])

/** Reason of the event about a certificate that could not be obtained: whether its tunnel is ready hangs on the one before. */
const CERTIFICATE_FAILED = 'CertificateFailed'

/** The failure that an object's status speaks of; undefined when it is none. Pure. */
export function failureOf(object: Resource<Kind>): { readonly reason: string; readonly note: string } | undefined {
  const conditioned = object as Parameters<typeof conditionOf>[0]
  const ready = conditionOf(conditioned, 'Ready')
  if (ready?.status === 'False' && FAILURES.has(ready.reason)) return { reason: ready.reason, note: ready.message }
  const { lastError } = (object as Partial<Tunnel>).status?.certificate ?? {}
  if (lastError !== undefined) return { reason: CERTIFICATE_FAILED, note: `its certificate could not be obtained: ${lastError}` }
  const keys = conditionOf(conditioned, KEYS_USABLE)
  return keys && { reason: keys.reason, note: keys.message }
}

/**
 * Tells each failure that a status comes to speak of, once. What failed before this began is known already: it was told then.
 * Call it once the cache has synced. Returns how to stop.
 */
export function tellFailures(cache: Cache<Kind>, events: Events): () => void {
  const told = new Map<string, string>()
  const idOf = ({ namespace = '', name }: Key) => `${namespace}/${name}`

  function look(key: Key): void {
    const object = cache.get(key)
    const failure = object && failureOf(object)
    const id = idOf(key)
    if (!failure) {
      told.delete(id)
      return
    }
    const text = JSON.stringify([object.metadata.uid, failure])
    if (told.get(id) === text) return
    told.set(id, text)
    events.failure({ kind: cache.kind, metadata: object.metadata, ...failure })
  }

  for (const object of cache.list()) {
    const failure = failureOf(object)
    if (failure) told.set(idOf(object.metadata), JSON.stringify([object.metadata.uid, failure]))
  }
  return cache.onChange(look)
}
