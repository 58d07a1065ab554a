import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { createCache } from '../../../store/cache.ts'
import { isStoreError, keyToString, type Store } from '../../../store/port.ts'
import { Node } from '../../kubernetes/kinds.ts'

export interface NodesDeps {
  readonly store: Store
  readonly logger: Logger
  /** Called when a node appeared, was deleted, or changed its addresses, labels or pod ranges: not at its heartbeats. */
  readonly onChange: () => void
}

/** Nodes of the cluster, followed by a watch: a pod on an unknown node would count as a caller from outside. */
export interface Nodes {
  /** Follows until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Known nodes; waits for the first list. Empty when the operator is not permitted to list nodes. */
  list(): Promise<readonly Node[]>
}

export function createNodes({ store, logger, onChange }: NodesDeps): Nodes {
  const refused = Promise.withResolvers<undefined>()
  const seen = new Map<string, unknown>()
  const cache = createCache({
    store,
    kind: Node,
    onError(error) {
      logger.warn({ err: error }, 'the watch of nodes was restarted')
      // Without permission, the address of the node in the pod's status is used.
      if (isStoreError(error, 'forbidden')) refused.resolve(undefined)
    },
  })

  cache.onChange((key) => {
    const id = keyToString(key)
    const node = cache.get(key)
    const [before, after] = [seen.get(id), node && whatCounts(node)]
    if (isDeepStrictEqual(before, after)) return
    if (after === undefined) seen.delete(id)
    else seen.set(id, after)
    onChange()
  })

  return {
    run: (signal) => cache.run(signal),
    async list() {
      await Promise.race([cache.synced(), refused.promise])
      return cache.list()
    },
  }
}

/** Fields of a node that a server's objects depend on. */
const whatCounts = ({ metadata, spec, status }: Node) => [metadata.labels, spec.podCIDRs, status?.addresses]
