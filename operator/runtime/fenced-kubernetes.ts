import { StoreCode, StoreError } from '../../store/errors.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'

/**
 * The same client, whose calls that may write (all that are no GETs) end before another process may lead: a request that hangs in the
 * network would otherwise be carried out beside a successor's, after what that has decided since.
 * @param writableMs for how long, in ms from now, this process may have a write under way; 0 when it does not lead
 */
export function createFencedClient(client: KubernetesClient, writableMs: () => number): KubernetesClient {
  return {
    async request(request) {
      if (request.method === 'GET') return client.request(request)
      const timeoutMs = writableMs()
      if (timeoutMs <= 0) throw new StoreError(StoreCode.unavailable, 'this process does not lead: it may not write')
      return client.request({ ...request, timeoutMs: Math.min(timeoutMs, request.timeoutMs ?? timeoutMs) })
    },
    open: (request, signal) => client.open(request, signal),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}
