import type { Draft, DraftMeta, Kind, Resource } from '../../crds/kind.ts'
import { annotations, labels } from '../../crds/names.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import { keyHash, type KeyOwner, sameRequest } from '../http/idempotency.ts'

/** Request that creates an object. */
export interface NamedRequest {
  readonly owner: KeyOwner
  /** Hash of the body. */
  readonly hash: string
  /** Name of the kind in messages; the kind's own name when absent. */
  readonly what?: string
}

/**
 * Creates an object whose name the caller chose, or returns the one that an earlier request with the same key and body created. A label stores the
 * Idempotency-Key, because the name cannot carry it as with `createOnce`. Two simultaneous requests with one key and two names may both create.
 * @throws ApiError `conflict` when the name is taken, `idempotency_key_reused`; StoreError of `create`
 */
export async function createNamed<K extends Kind>(
  store: Store,
  kind: K,
  draft: Draft<K>,
  { owner, hash, what = kind.singular }: NamedRequest,
): Promise<{ readonly object: Resource<K>; readonly created: boolean }> {
  const { metadata } = draft as { metadata: DraftMeta }
  if (owner.key === undefined) return { object: await createNew({ store, kind, what }, draft), created: true }
  const label = { [labels.idempotencyKey]: keyHash(owner) }
  const find = async (): Promise<Resource<K> | undefined> => (await store.list(kind, { labels: label })).items[0]
  const earlier = await find()
  if (earlier) return { object: sameRequest(earlier, hash), created: false }
  const marked = {
    ...metadata,
    labels: { ...metadata.labels, ...label },
    annotations: { ...metadata.annotations, [annotations.requestHash]: hash },
  }
  try {
    return { object: await createNew({ store, kind, what }, { ...draft, metadata: marked }), created: true }
  } catch (error) {
    // The same request, sent twice at once: the other one was faster.
    const twin = error instanceof ApiError ? await find() : undefined
    if (!twin) throw error
    return { object: sameRequest(twin, hash), created: false }
  }
}

interface Target<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly what: string
}

async function createNew<K extends Kind>({ store, kind, what }: Target<K>, draft: Draft<K>): Promise<Resource<K>> {
  try {
    return await store.create(kind, draft)
  } catch (cause) {
    if (!isStoreError(cause, 'already_exists')) throw cause
    throw new ApiError('conflict', `this ${what} exists already; choose another slug`, { cause })
  }
}
