import type { Lease } from '../../crds/core.ts'
import type { DeepReadonly } from '../../crds/kind.ts'
import { StoreCode, StoreError } from '../../store/errors.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { createStoreOver, type KubernetesStore } from '../../store/kubernetes.ts'
import type { LeaderElection } from './leader.ts'

/** Lease as a candidate observed it, and the monotonic time in ms at which it observed the last change. */
export interface Observation {
  readonly lease: Lease
  readonly since: number
}

/** Next step of a candidate. */
export type Move =
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

/**
 * Store of the leader: every request of it and of its `client` goes through {@link createFencedClient}. The caller owns `client`, which
 * `close` of the store closes too.
 */
export function createFencedStore(
  client: KubernetesClient,
  deps: { readonly election: Pick<LeaderElection, 'writableMs'>; readonly fieldManager: string },
): KubernetesStore {
  const { election, fieldManager } = deps
  return createStoreOver(
    createFencedClient(client, () => election.writableMs()),
    { fieldManager },
  )
}

/**
 * Client that sends writes (all requests but GET) only while this process is leader, and aborts each before another replica may become
 * leader. A write that hangs in the network would otherwise be carried out after a decision of the next leader. Reads always pass.
 * @param writableMs how long from now this process may have a write under way, in ms; 0 when it is not leader
 */
export function createFencedClient(client: KubernetesClient, writableMs: () => number): KubernetesClient {
  return {
    /** @throws StoreError `unavailable` also for a write of a process that is not leader */
    async request(request) {
      if (request.method === 'GET') return client.request(request)
      const timeoutMs = writableMs()
      if (timeoutMs <= 0) throw new StoreError(StoreCode.unavailable, 'write rejected: this process is not the leader')
      return client.request({ ...request, timeoutMs: Math.min(timeoutMs, request.timeoutMs ?? timeoutMs) })
    },
    open: (request, signal) => client.open(request, signal),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}
