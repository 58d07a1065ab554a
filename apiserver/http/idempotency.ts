import { createHash, randomBytes } from 'node:crypto'
import type { Draft, DraftMeta, Kind, Resource } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from './errors.ts'

/** Bytes of hash or randomness in an object name: 128 bits, as 32 hex characters. */
const NAME_BYTES = 16
/** Maximum number of attempts: an existing object can be deleted between `create` and `get`. */
const ATTEMPTS = 3

/** Scope of an Idempotency-Key: keys of other namespaces and callers are independent. */
export interface KeyOwner {
  readonly namespace: string
  readonly user: string
  readonly key: string | undefined
}

/**
 * Checks the form of an `Idempotency-Key`: 1 to 255 visible ASCII characters.
 * @throws ApiError `invalid_request`
 */
export function parseIdempotencyKey(value: string | undefined): string | undefined {
  if (value === undefined || /^[\x21-\x7e]{1,255}$/.test(value)) return value
  throw new ApiError('invalid_request', 'the header Idempotency-Key must be 1 to 255 visible ASCII characters', {
    details: [{ field: 'Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' }],
  })
}

/** Returns the hex hash of namespace, caller and key. */
export function keyHash({ namespace, user, key }: KeyOwner): string {
  return createHash('sha256')
    .update(JSON.stringify([namespace, user, key]))
    .digest('hex')
    .slice(0, 2 * NAME_BYTES)
}

/**
 * Returns the name of the object that a POST creates: `{prefix}-{32 hex}`. With a key it is a function of namespace, caller and key, so that the
 * store's `create` decides between equal requests; without a key it is random.
 */
export function objectName(prefix: string, id: KeyOwner): string {
  return `${prefix}-${id.key === undefined ? randomBytes(NAME_BYTES).toString('hex') : keyHash(id)}`
}

/** Returns the SHA-256 (hex) of a parsed JSON body, independent of the order of keys. */
export function requestHash(body: unknown): string {
  return createHash('sha256').update(canonical(body)).digest('hex')
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined)
    const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${sorted.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join()}}`
  }
  return JSON.stringify(value)
}

/**
 * Creates the object, or returns the one that an earlier request with the same key and body created. `draft.metadata.name` comes from
 * {@link objectName}; this function adds the annotation with `expectedHash`.
 * @throws ApiError `idempotency_key_reused` when the earlier body was different, `conflict` when the earlier object is being deleted;
 * StoreError of `create`
 */
export async function createOnce<K extends Kind>(
  store: Store,
  kind: K,
  draft: Draft<K>,
  expectedHash: string,
): Promise<{ object: Resource<K>; created: boolean }> {
  const { metadata } = draft as { metadata: DraftMeta }
  const marked = { ...metadata, annotations: { ...metadata.annotations, [annotations.requestHash]: expectedHash } }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      return { object: await store.create(kind, { ...draft, metadata: marked }), created: true }
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
    }
    const existing = await store.get(kind, metadata)
    if (existing) return { object: sameRequest(existing, expectedHash), created: false }
  }
  throw new ApiError('conflict', 'the resource of this Idempotency-Key is changing; try again')
}

/** Returns the object if a request with this hash created it and it is not being deleted. @throws ApiError as createOnce */
export function sameRequest<K extends Kind>(existing: Resource<K>, expectedHash: string): Resource<K> {
  if (existing.metadata.deletionTimestamp !== undefined) {
    throw new ApiError('conflict', 'the resource of this Idempotency-Key is being deleted; retry when it is gone')
  }
  if (existing.metadata.annotations?.[annotations.requestHash] !== expectedHash) {
    throw new ApiError(
      'idempotency_key_reused',
      'this Idempotency-Key was used with another body; send that body, or another key',
    )
  }
  return existing
}
