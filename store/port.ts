import type { Draft, Kind, Resource, StatusOf, ObjectMeta } from '../crds/kind.ts'
import { type FieldError, MooringError } from '../shared/errors.ts'
import { isFields } from '../crds/formats/fields.ts'

/** Name of an object. `namespace` is absent for cluster-scoped kinds. */
export interface Key {
  readonly namespace?: string | undefined
  readonly name: string
}

export interface ListOptions {
  readonly namespace?: string | undefined
  /** Labels that an object must have, with exactly these values. */
  readonly labels?: Readonly<Record<string, string>> | undefined
}

export interface ListResult<K extends Kind> {
  /** Ordered by namespace, then name. */
  readonly items: readonly Resource<K>[]
  /** Revision of the collection: a watch from this revision misses no event. */
  readonly resourceVersion: string
}

export interface WatchOptions extends ListOptions {
  /** Revision to start at: events after it are replayed in order, then live events follow. */
  readonly resourceVersion: string
  /** Signal that ends the iteration without an error. */
  readonly signal: AbortSignal
}

export type WatchEvent<K extends Kind> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: Resource<K> }
  /** Bookmark: all events up to this revision have been sent. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }

/** Values that the object must have for a write to happen; absent values are not checked. */
export interface Preconditions {
  readonly resourceVersion?: string | undefined
  readonly uid?: string | undefined
}

/** JSON merge patch (RFC 7396) of labels, annotations, finalizers, owner references and the body, never of status. */
export type Patch = Readonly<Record<string, unknown>>

/**
 * Store of resources: a Kubernetes API server, or memory over SQLite in embedded mode. Both have Kubernetes' semantics
 * (test/conformance/store) and throw only {@link StoreError}. Returned objects are deeply frozen and may be shared.
 *
 * - `resourceVersion` is a global revision. A write that changes nothing neither increases it nor causes an event.
 * - `generation` increases when `spec` changes. `create`, `replace` and `mergePatch` ignore `status`; `patchStatus` changes only `status`.
 * - `delete` of an object with finalizers only sets `deletionTimestamp`; the object is removed with its last finalizer.
 *   Dependants (ownerReferences) are deleted after their last owner, and the objects in a Namespace with the Namespace.
 * - A write is acknowledged once it is durable.
 */
export interface Store {
  /** Reads an object. @returns undefined when it does not exist */
  get<K extends Kind>(kind: K, key: Key): Promise<Resource<K> | undefined>
  list<K extends Kind>(kind: K, options?: ListOptions): Promise<ListResult<K>>
  /** Watches a collection. @throws StoreError `gone` (from the iteration) when the revision was compacted */
  watch<K extends Kind>(kind: K, options: WatchOptions): AsyncIterable<WatchEvent<K>>
  /** Creates an object. @throws StoreError `already_exists`, `invalid`, `not_found` (its namespace), `forbidden` (namespace is being deleted) */
  create<K extends Kind>(kind: K, draft: Draft<K>): Promise<Resource<K>>
  /**
   * Replaces all but status. `metadata.resourceVersion` and `metadata.uid` of `object` are preconditions.
   * @throws StoreError `conflict`, `not_found`, `invalid`
   */
  replace<K extends Kind>(kind: K, object: Resource<K>): Promise<Resource<K>>
  /** Patches all but status. @throws StoreError `conflict`, `not_found`, `invalid` */
  mergePatch<K extends Kind>(kind: K, key: Key, patch: Patch, preconditions?: Preconditions): Promise<Resource<K>>
  /** Applies a merge patch to the status; `null` removes a field. @throws StoreError `conflict`, `not_found`, `invalid` */
  patchStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: { readonly [P in keyof StatusOf<K>]?: StatusOf<K>[P] | null | undefined },
    preconditions?: Preconditions,
  ): Promise<Resource<K>>
  /** Deletes an object. Resolves when it is removed or has a `deletionTimestamp`. @throws StoreError `not_found`, `conflict` */
  delete(kind: Kind, key: Key, preconditions?: Preconditions): Promise<void>
}

/** Codes of {@link StoreError}. Both stores throw only these errors; branch on `code`. */
export const StoreCode = {
  notFound: 'not_found',
  alreadyExists: 'already_exists',
  /** The object no longer has the resourceVersion or uid of the request. */
  conflict: 'conflict',
  /** The object breaks its schema or a rule; `fields` names the fields. */
  invalid: 'invalid',
  /** The revision was compacted: list again. */
  gone: 'gone',
  forbidden: 'forbidden',
  /** The store is unreachable or cannot write at present. No change was made, unless the response was lost: check before a retry. */
  unavailable: 'unavailable',
} as const
export type StoreCode = (typeof StoreCode)[keyof typeof StoreCode]

/** Error of a store. */
export class StoreError extends MooringError {
  declare readonly code: StoreCode
  readonly fields: readonly FieldError[]

  constructor(code: StoreCode, message: string, options: ErrorOptions & { fields?: readonly FieldError[] } = {}) {
    super(code, message, options)
    this.fields = options.fields ?? []
  }
}

/** Whether `error` is a StoreError with this code. */
export function isStoreError(error: unknown, code: StoreCode): error is StoreError {
  return error instanceof StoreError && error.code === code
}

/** Returns the result of a write; undefined when its object is gone. @throws StoreError with another code */
export async function ignoringGone<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write
  } catch (error) {
    if (!isStoreError(error, 'not_found')) throw error
    return undefined
  }
}

/** Formats a key: `acme--prod/pr-1`, or `local` for a cluster-scoped object. Names contain no slash. */
export function keyToString({ namespace, name }: Key): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** Parses the result of {@link keyToString}. */
export function keyFromString(text: string): Key {
  const slash = text.indexOf('/')
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

export function keyOf({ metadata }: { readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'> }): Key {
  return metadata.namespace === undefined ? { name: metadata.name } : { namespace: metadata.namespace, name: metadata.name }
}

/**
 * Applies a JSON merge patch (RFC 7396): objects are merged, `null` removes a member, other values (arrays too) replace the old value.
 * The arguments are not changed. Members named `__proto__` are dropped, because assigning them would change the prototype.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch
  const result: Record<string, unknown> = isFields(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (name === '__proto__' || value === undefined) continue
    if (value === null) Reflect.deleteProperty(result, name)
    else result[name] = mergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value)
  }
  return result
}

/** Freezes a value and its members in place. Values that are already frozen are assumed to be deeply frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const member of Object.values(value)) deepFreeze(member)
  return Object.freeze(value)
}
