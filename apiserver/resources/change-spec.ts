import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { Kind, ObjectMeta, Resource } from '../../crds/kind.ts'
import { isStoreError } from '../../store/errors.ts'
import { mergePatch } from '../../store/merge-patch.ts'
import type { Patch, Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import { type IfMatch, requireExpected } from '../http/if-match.ts'
import { nounOf } from './nouns.ts'

/** What a request wishes of a resource that it found. */
export interface SpecChange<K extends Kind> {
  /** As it was found; that very object is changed, and none of its name. */
  readonly found: Resource<K>
  /** resourceVersions one of which it must have. */
  readonly ifMatch?: IfMatch | undefined
  /** Merge patch of the spec, for the resource as it is now. @throws ApiError when what it would be then is refused */
  readonly specOf: (now: Resource<K>) => Patch
  /** Annotations that go with a change, and not without one. */
  readonly marks?: Readonly<Record<string, string>>
}

/** A resource before a request changed it, and after: the same one when there was nothing to change. */
export interface ChangedSpec<K extends Kind> {
  readonly before: Resource<K>
  readonly after: Resource<K>
  readonly isChanged: boolean
}

/** The operator writes status beside us, so a conflict is ordinary; this many in a row are not. */
const ATTEMPTS = 20

/**
 * Changes a spec by exactly what a request wishes, whoever else writes meanwhile; one that is as wished already is not written.
 * @throws ApiError `not_found`; `conflict` when it is being deleted, or is at no version of `ifMatch`; `unavailable`; what `specOf` throws; StoreError
 */
export async function changeSpec<K extends Kind>(store: Store, kind: K, change: SpecChange<K>): Promise<ChangedSpec<K>> {
  const { found, ifMatch, specOf, marks } = change
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const before = await store.get(kind, found.metadata)
    if (before?.metadata.uid !== found.metadata.uid) throw new ApiError('not_found', `this ${nounOf(kind)} is gone`)
    requireOpen(kind, before.metadata, ifMatch)
    const spec = specOf(before)
    if (isNothing(kind, before, spec)) return { before, after: before, isChanged: false }
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

/** @throws ApiError `conflict` */
function requireOpen(kind: Kind, { deletionTimestamp, resourceVersion }: ObjectMeta, ifMatch: IfMatch | undefined): void {
  if (deletionTimestamp !== undefined)
    throw new ApiError('conflict', `this ${nounOf(kind)} is being deleted, and cannot be changed`)
  requireExpected(resourceVersion, ifMatch)
}

/** Whether a patch leaves a spec as it is; one that breaks a rule does not. */
function isNothing(kind: Kind, object: object, patch: Patch): boolean {
  const { spec: schema } = kind.body.shape as { readonly spec: z.ZodType }
  const { spec } = object as { readonly spec: unknown }
  const [before, after] = [spec, mergePatch(spec, patch)].map((each) => schema.safeParse(each))
  return before?.success === true && after?.success === true && isDeepStrictEqual(after.data, before.data)
}
