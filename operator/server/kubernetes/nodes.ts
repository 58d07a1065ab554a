import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { createCache } from '../../../store/cache.ts'
import { isStoreError } from '../../../store/errors.ts'
import { keyToString } from '../../../store/key-string.ts'
import type { Store } from '../../../store/port.ts'
import { Node } from '../../kubernetes/kinds.ts'

export interface NodesDeps {
  readonly store: Store
  readonly logger: Logger
  /** Called when a node came or went, or has other addresses or ranges of pods than before: not at its heartbeats. */
  readonly onChange: () => void
}

/** The cluster's nodes, followed: a pod of a node that nobody has heard of yet would count as a caller from outside. */
export interface Nodes {
  /** Follows until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Those known: waits for the first look at them. None where they may not be looked at. */
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
      // Without them there is the address that the pod itself tells of its node.
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

/** All of a node that a server's objects depend on. */
const whatCounts = ({ metadata, spec, status }: Node) => [metadata.labels, spec.podCIDRs, status?.addresses]
