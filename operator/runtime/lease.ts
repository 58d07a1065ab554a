import type { Lease } from '../../crds/core.ts'
import type { DeepReadonly } from '../../crds/kind.ts'

/** What this candidate has seen of the lease: the record, and when (monotonic ms) it last saw it change. */
export interface Sighting {
  readonly lease: Lease
  readonly since: number
}

/** What a candidate does next. */
export type Move =
  | { readonly type: 'take' }
  /** `ms` until the lease has run out, if its holder does not renew it. */
  | { readonly type: 'wait'; readonly ms: number }

/**
 * Whether a candidate may take the lease. Clocks of two machines are never compared: the holder is given the time that its own record
 * names, counted from when this candidate saw the record change. Pure.
 */
export function nextMove({ lease, since }: Sighting, identity: string, now: number): Move {
  const { holderIdentity = '', leaseDurationSeconds = 0 } = lease.spec
  // Its own: of a request whose answer never came.
  if (holderIdentity === '' || holderIdentity === identity) return { type: 'take' }
  const left = since + leaseDurationSeconds * 1_000 - now
  return left <= 0 ? { type: 'take' } : { type: 'wait', ms: left }
}

/** The sighting after reading `lease`: any write to it, by whomever, gives the holder its whole time again. */
export function sight(lease: Lease, before: Sighting | undefined, now: number): Sighting {
  const { uid, resourceVersion } = lease.metadata
  const same = before?.lease.metadata.uid === uid && before.lease.metadata.resourceVersion === resourceVersion
  return { lease, since: same ? before.since : now }
}

type LeaseSpec = DeepReadonly<Lease['spec']>

/** `2030-01-31T12:00:00.000000Z` */
export const microTime = (at: Date): string => `${at.toISOString().slice(0, -1)}000Z`

/** The spec of a lease that is taken now. */
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
