import type { Logger } from 'pino'
import { StoreError } from '../../../store/errors.ts'
import type { Store } from '../../../store/port.ts'
import { Node } from './kinds.ts'

/** The cluster's nodes, as of the last look: their addresses and ranges of pods seldom change, and a watch would bring every heartbeat. */
export interface Nodes {
  /** Those known; looks anew when `needed` is not among them. */
  list(needed?: string): Promise<readonly Node[]>
  /** The next `list` looks anew. */
  expire(): void
}

export function createNodes({ store, logger }: { readonly store: Pick<Store, 'list'>; readonly logger: Logger }): Nodes {
  let known: readonly Node[] | undefined

  async function look(): Promise<readonly Node[]> {
    try {
      return (await store.list(Node)).items
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      // Without them there is the address that the pod itself tells of its node.
      logger.warn({ code: error.code, reason: error.message }, 'the nodes cannot be listed')
      return known ?? []
    }
  }

  return {
    async list(needed) {
      const missing = needed !== undefined && known?.every(({ metadata }) => metadata.name !== needed) === true
      if (!known || missing) known = await look()
      return known
    },
    expire() {
      known = undefined
    },
  }
}
