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

/** The instances of a namespace that have an identifier. */
export interface Identified {
  readonly live: SharedInstance | undefined
  /** Those that are being deleted. */
  readonly going: readonly SharedInstance[]
}

/**
 * Finds what an identifier names. Asks the store, not the cache: another API server may have acknowledged one just now.
 * @throws ApiError `conflict` when several have it and stay; StoreError
 */
export async function findByIdentifier(store: Store, namespace: string, identifier: string): Promise<Identified> {
  const all = (await store.list(SharedInstance, { namespace })).items.filter(({ spec }) => spec.identifier === identifier)
  const [going, staying] = [true, false].map((gone) =>
    all.filter((each) => (each.metadata.deletionTimestamp !== undefined) === gone),
  )
  if (staying && staying.length > 1) {
    const message = `${staying.length} databases have the identifier ${identifier}; name one of them by its id`
    throw new ApiError('conflict', message, { details: [{ field: 'identifier', message: 'must be that of one database' }] })
  }
  return { live: staying?.[0], going: going ?? [] }
}

/**
 * Name of the object that a PUT makes: a function of namespace and identifier, so that of many at once one creates it. An object whose
 * identifier was changed later keeps its name; `attempt` then gives the next name, again the same one to all.
 */
export function nameByIdentifier(namespace: string, identifier: string, attempt: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(['by-identifier', namespace, identifier, attempt]))
    .digest('hex')
  return `i-${hash.slice(0, 32)}`
}
