import { createHash } from 'node:crypto'
import { z } from 'zod'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import { Identifier } from './instance-body.ts'

export const BY_IDENTIFIER_PATH = '/v1/instances/by-identifier/{identifier}'

export const ByIdentifierParams = z.object({
  identifier: Identifier.describe('Identifier of the database, percent-encoded: `feature/a b#1` is `feature%2Fa%20b%231`.').meta({
    examples: ['pr-42'],
  }),
})

/** Instances of a namespace with the same identifier. */
export interface Identified {
  readonly live: SharedInstance | undefined
  /** Instances that are being deleted. */
  readonly deleting: readonly SharedInstance[]
}

/**
 * Finds the instances with an identifier. Reads the store, not the cache: another API server may just have created one.
 * @throws ApiError `conflict` when several live instances have it; StoreError
 */
export async function findByIdentifier(store: Store, namespace: string, identifier: string): Promise<Identified> {
  const all = (await store.list(SharedInstance, { namespace })).items.filter(({ spec }) => spec.identifier === identifier)
  const isDeleting = ({ metadata }: SharedInstance): boolean => metadata.deletionTimestamp !== undefined
  const live = all.filter((each) => !isDeleting(each))
  if (live.length > 1) {
    const message = `${live.length} databases have the identifier ${identifier}; name one of them by its id`
    throw new ApiError('conflict', message, { details: [{ field: 'identifier', message: 'must name one database' }] })
  }
  return { live: live[0], deleting: all.filter(isDeleting) }
}

/**
 * Returns the name of the object that a PUT creates: a function of namespace and identifier, so that only one of many simultaneous requests creates
 * it. An object keeps its name when its identifier changes; `attempt` then selects the next name, the same for all requests.
 */
export function nameByIdentifier(namespace: string, identifier: string, attempt: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(['by-identifier', namespace, identifier, attempt]))
    .digest('hex')
  return `i-${hash.slice(0, 32)}`
}
