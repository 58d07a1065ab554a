import type { Lease } from '../../crds/core.ts'
import type { DeepReadonly } from '../../crds/kind.ts'

/** Lease as a candidate observed it, and the monotonic time in ms at which it observed the last change. */
export interface Observation {
  readonly lease: Lease
  readonly since: number
}

/** Next step of a candidate. */
type Move =
  | { readonly type: 'take' }
  /** `ms` until the lease expires, unless its holder renews it. */
  | { readonly type: 'wait'; readonly ms: number }

/**
 * Decides whether a candidate may take the lease. Clocks of two machines are never compared: the holder has the duration in its own record,
 * counted from when this candidate observed the last change. Pure.
 */
export function nextMove({ lease, since }: Observation, identity: string, now: number): Move {
  const { holderIdentity = '', leaseDurationSeconds = 0 } = lease.spec
  // A lease of its own comes from a request whose response was lost.
  if (holderIdentity === '' || holderIdentity === identity) return { type: 'take' }
  const left = since + leaseDurationSeconds * 1_000 - now
  return left <= 0 ? { type: 'take' } : { type: 'wait', ms: left }
}

/** Returns the new sighting. Any write to the lease, by any client, restarts the holder's duration. */
export function observe(lease: Lease, before: Observation | undefined, now: number): Observation {
  const { uid, resourceVersion } = lease.metadata
  const same = before?.lease.metadata.uid === uid && before.lease.metadata.resourceVersion === resourceVersion
  return { lease, since: same ? before.since : now }
}

type LeaseSpec = DeepReadonly<Lease['spec']>

/** Formats a Kubernetes MicroTime: `2030-01-31T12:00:00.000000Z`. */
export const microTime = (at: Date): string => `${at.toISOString().slice(0, -1)}000Z`

/** Spec of a lease that is taken now. */
export function takenBy(identity: string, seconds: number, { at, before }: { at: Date; before?: LeaseSpec }): LeaseSpec {
  const transitions = before?.leaseTransitions ?? 0
  return {
    holderIdentity: identity,
    leaseDurationSeconds: seconds,
    acquireTime: microTime(at),
    renewTime: microTime(at),
    leaseTransitions: before ? transitions + 1 : transitions,
  }
}
