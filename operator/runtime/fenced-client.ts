import { StoreCode, StoreError } from '../../store/errors.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { createStoreOver, type KubernetesStore } from '../../store/kubernetes.ts'
import type { LeaderElection } from './leader.ts'

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
