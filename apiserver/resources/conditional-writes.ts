import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { Kind, ObjectMeta, Resource } from '../../crds/kind.ts'
import { isStoreError, type Patch, type Store, mergePatch } from '../../store/port.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import { nounOf } from './names-and-times.ts'

/** Versions that a header `If-Match` accepts: `*` for any existing one, or a list, possibly empty (RFC 9110, section 13.1.1). */
export type IfMatch = '*' | readonly string[]

/** Entity tag (RFC 9110, section 8.8.3), or its text without the quotes. */
const TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"|[\w.-]+/g

/**
 * Parses `"123"`, `123`, `"122", "123"` or `*`; undefined without the header. A weak tag never matches, so it is left out.
 * @throws ApiError `invalid_request`
 */
export function parseIfMatch(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined
  if (header.trim() === '*') return '*'
  const tags = [...header.matchAll(TAG)]
  const elements = header.replaceAll(TAG, 't').split(',')
  // Empty elements of a list are ignored (RFC 9110, section 5.6.1.2).
  const isList = elements.every((element) => ['', 't'].includes(element.trim()))
  if (tags.length > 0 && isList) return tags.flatMap(([all, weak, quoted = all]) => (weak === undefined ? [quoted] : []))
  throw wrongField('If-Match', 'must be entity tags, as the ETag of an answer, or *')
}

/** Whether the caller expects the current version of a resource; `resourceVersion` is undefined when the resource does not exist. */
export function isExpected(resourceVersion: string | undefined, ifMatch: IfMatch | undefined): boolean {
  if (ifMatch === undefined) return true
  return resourceVersion !== undefined && (ifMatch === '*' || ifMatch.includes(resourceVersion))
}

/** @throws ApiError `conflict` unless {@link isExpected} */
export function requireExpected(resourceVersion: string | undefined, ifMatch: IfMatch | undefined): void {
  if (!isExpected(resourceVersion, ifMatch))
    throw new ApiError('conflict', 'the resource is not at the version of If-Match; read it again, then repeat the change')
}

/** Change that a request makes to a resource that it found. */
export interface SpecChange<K extends Kind> {
  /** Object to change; another object of the same name is left alone. */
  readonly found: Resource<K>
  /** Accepted resourceVersions. */
  readonly ifMatch?: IfMatch | undefined
  /** Returns the merge patch of the spec for the current resource; called anew for each attempt. @throws ApiError when the result would be invalid */
  readonly specOf: (now: Resource<K>) => Patch | Promise<Patch>
  /** Annotations to set if the spec changes. */
  readonly marks?: Readonly<Record<string, string>>
}

/** Resource before and after a request; the same object when the request changes nothing. */
export interface ChangedSpec<K extends Kind> {
  readonly before: Resource<K>
  readonly after: Resource<K>
  readonly isChanged: boolean
}

/** Maximum number of attempts. The operator writes the status of the same object, so single conflicts are normal. */
const ATTEMPTS = 20

/**
 * Applies a merge patch to a spec and repeats it after a conflict with another writer. A patch without a change writes nothing.
 * @throws ApiError `not_found`; `conflict` when the object is being deleted or has no version of `ifMatch`; `unavailable`; the error of `specOf`;
 * StoreError
 */
export async function changeSpec<K extends Kind>(store: Store, kind: K, change: SpecChange<K>): Promise<ChangedSpec<K>> {
  const { found, ifMatch, specOf, marks } = change
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const before = await store.get(kind, found.metadata)
    if (before?.metadata.uid !== found.metadata.uid) throw new ApiError('not_found', `this ${nounOf(kind)} no longer exists`)
    requireOpen(kind, before.metadata, ifMatch)
    const spec = await specOf(before)
    if (isUnchanged(kind, before, spec)) return { before, after: before, isChanged: false }
    const { uid, resourceVersion } = before.metadata
    try {
      const patch = { spec, ...(marks && { metadata: { annotations: marks } }) }
      return { before, after: await store.mergePatch(kind, before.metadata, patch, { uid, resourceVersion }), isChanged: true }
    } catch (error) {
      if (!isStoreError(error, 'conflict')) throw error
    }
  }
  throw new ApiError('unavailable', `other requests keep changing this ${nounOf(kind)}; try again`)
}

/** Checks that the object can be changed. @throws ApiError `conflict` */
function requireOpen(kind: Kind, { deletionTimestamp, resourceVersion }: ObjectMeta, ifMatch: IfMatch | undefined): void {
  if (deletionTimestamp !== undefined)
    throw new ApiError('conflict', `this ${nounOf(kind)} is being deleted, and cannot be changed`)
  requireExpected(resourceVersion, ifMatch)
}

/** Whether a patch leaves a spec unchanged; false for a patch with an invalid result. */
function isUnchanged(kind: Kind, object: object, patch: Patch): boolean {
  const { spec: schema } = kind.body.shape as { readonly spec: z.ZodType }
  const { spec } = object as { readonly spec: unknown }
  const [before, after] = [spec, mergePatch(spec, patch)].map((each) => schema.safeParse(each))
  return before?.success === true && after?.success === true && isDeepStrictEqual(after.data, before.data)
}

/** Object to delete. */
interface Found {
  readonly metadata: ObjectMeta
}

const isAny = (ifMatch: IfMatch | undefined): boolean => ifMatch === undefined || ifMatch === '*'

/**
 * Deletes this object if it has a version that the caller expects.
 * @throws ApiError `conflict` at another version; StoreError `not_found`, `conflict`
 */
export async function deleteExpected(store: Store, kind: Kind, { metadata }: Found, ifMatch: IfMatch | undefined): Promise<void> {
  const { uid } = metadata
  if (isAny(ifMatch)) return store.delete(kind, metadata, { uid })
  const now = (await store.get(kind, metadata))?.metadata
  if (now?.uid === uid) requireExpected(now.resourceVersion, ifMatch)
  return store.delete(kind, metadata, { uid, resourceVersion: now?.resourceVersion })
}

/**
 * Starts the deletion of this object. Returns false when another request started it before or the object is gone.
 * @throws ApiError, StoreError `conflict` at a version that the caller does not expect
 */
export async function requestDeletion(store: Store, kind: Kind, found: Found, ifMatch: IfMatch | undefined): Promise<boolean> {
  const isBeingDeleted = found.metadata.deletionTimestamp !== undefined
  if (isBeingDeleted && isAny(ifMatch)) return false
  try {
    await deleteExpected(store, kind, found, ifMatch)
    return !isBeingDeleted
  } catch (error) {
    if (isStoreError(error, 'not_found') || (isStoreError(error, 'conflict') && isAny(ifMatch))) return false
    throw error
  }
}
