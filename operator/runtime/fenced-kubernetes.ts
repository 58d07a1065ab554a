import { StoreCode, StoreError } from '../../store/errors.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { createFencedStore } from './fenced-store.ts'

/** {@link createFencedStore} for all that a Kubernetes store can do: calls beside the port that are no GETs are refused likewise. */
export function createFencedKubernetesStore(store: KubernetesStore, leads: () => boolean): KubernetesStore {
  const { client } = store
  return {
    ...createFencedStore(store, leads),
    client: {
      async request(request) {
        if (request.method !== 'GET' && !leads())
          throw new StoreError(StoreCode.unavailable, 'this process does not lead: it may not write')
        return client.request(request)
      },
      open: (request, signal) => client.open(request, signal),
      close: () => client.close(),
      [Symbol.asyncDispose]: () => client.close(),
    },
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store.close(),
  }
}
