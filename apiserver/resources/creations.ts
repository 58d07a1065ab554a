import { createHash, randomBytes } from 'node:crypto'
import type { Kind, Draft, DraftMeta, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'
import { annotations, labels } from '../../crds/names.ts'
import { isStoreError, type Store } from '../../store/port.ts'

/** Bytes of hash or randomness in an object name: 128 bits, as 32 hex characters. */
const NAME_BYTES = 16
/** Maximum number of attempts: an existing object can be deleted between `create` and `get`. */
const ATTEMPTS = 3

/** Scope of an Idempotency-Key: keys of other namespaces and callers are independent. */
interface KeyOwner {
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
function keyHash({ namespace, user, key }: KeyOwner): string {
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

/** Request that creates an object. */
interface NamedRequest {
  readonly owner: KeyOwner
  /** Hash of the body. */
  readonly hash: string
  /** Name of the kind in messages; the kind's own name when absent. */
  readonly what?: string
  /** Field of the body with the name; `slug` when absent. */
  readonly field?: string
}

/**
 * Returns the object that an earlier request with this key created by {@link createNamed}; undefined without a key. An object of another
 * namespace does not count: its tenant may have given it any label. @throws StoreError
 */
export async function findKeyed<K extends Kind>(store: Store, kind: K, owner: KeyOwner): Promise<Resource<K> | undefined> {
  if (owner.key === undefined) return undefined
  const scope = { labels: { [labels.idempotencyKey]: keyHash(owner) }, ...(kind.namespaced && { namespace: owner.namespace }) }
  return (await store.list(kind, scope)).items[0]
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
  { owner, hash, what = kind.singular, field = 'slug' }: NamedRequest,
): Promise<{ readonly object: Resource<K>; readonly created: boolean }> {
  const { metadata } = draft as { metadata: DraftMeta }
  const target = { store, kind, what, field }
  if (owner.key === undefined) return { object: await createNew(target, draft), created: true }
  const earlier = await findKeyed(store, kind, owner)
  if (earlier) return { object: sameRequest(earlier, hash), created: false }
  const marked = {
    ...metadata,
    labels: { ...metadata.labels, [labels.idempotencyKey]: keyHash(owner) },
    annotations: { ...metadata.annotations, [annotations.requestHash]: hash },
  }
  try {
    return { object: await createNew(target, { ...draft, metadata: marked }), created: true }
  } catch (error) {
    // The same request, sent twice at once: the other one was faster.
    const twin = error instanceof ApiError ? await findKeyed(store, kind, owner) : undefined
    if (!twin) throw error
    return { object: sameRequest(twin, hash), created: false }
  }
}

interface Target<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly what: string
  readonly field: string
}

async function createNew<K extends Kind>({ store, kind, what, field }: Target<K>, draft: Draft<K>): Promise<Resource<K>> {
  try {
    return await store.create(kind, draft)
  } catch (cause) {
    if (!isStoreError(cause, 'already_exists')) throw cause
    const message = `this ${what} exists already; choose another ${field}`
    throw new ApiError('conflict', message, { cause, details: [{ field, message }] })
  }
}

export interface QuotaDeps<K extends Kind> {
  readonly cache: Pick<Cache<K>, 'list'>
  readonly max: number
  /** Owner of the quota in messages; `namespace` when absent. */
  readonly of?: string
  /** Counted objects in messages, in the plural: `databases`. */
  readonly what: string
}

/** Namespace and name of an object about to be created. */
export interface ObjectKey {
  readonly namespace: string
  readonly name: string
}

export interface Quota {
  /**
   * Reserves a slot for an object about to be created. Dispose of the reservation when the cache has the object or its creation failed.
   * An existing object, or one being created, already has its slot, so a repeated request never fails because of the first one.
   * @throws ApiError `quota_exceeded`
   */
  reserve(key: ObjectKey): Disposable
}

/**
 * Limits the objects of a kind in a namespace. Cached objects and objects that this process is creating are counted together by name, so that
 * simultaneous requests cannot exceed the limit. Several processes can, by the objects created within the delay of a watch; for instances and
 * tunnels the operator enforces the quota as well.
 */
export function createCreationQuota<K extends Kind>({ cache, max, of = 'namespace', what }: QuotaDeps<K>): Quota {
  /** Number of requests that are creating an object, by namespace and name; a repeated request counts again. */
  const creating = new Map<string, Map<string, number>>()

  function reserve({ namespace, name }: ObjectKey): Disposable {
    const here = creating.get(namespace) ?? new Map<string, number>()
    const taken = new Set([...here.keys(), ...cache.list({ namespace }).map((object) => object.metadata.name)])
    if (!taken.has(name) && taken.size >= max) {
      throw new ApiError(
        'quota_exceeded',
        `the quota of this ${of} is used up: ${taken.size} of ${max} ${what}; delete one, or ask for a higher quota`,
      )
    }
    creating.set(namespace, here.set(name, (here.get(name) ?? 0) + 1))
    return { [Symbol.dispose]: () => release({ namespace, name }) }
  }

  function release({ namespace, name }: ObjectKey): void {
    const here = creating.get(namespace)
    const requests = here?.get(name) ?? 0
    if (requests > 1) here?.set(name, requests - 1)
    else here?.delete(name)
    if (here?.size === 0) creating.delete(namespace)
  }

  return { reserve }
}
