import { isDeepStrictEqual } from 'node:util'
import { Namespace } from '../../crds/core.ts'
import { apiVersionOf, type Kind, type ObjectMeta } from '../../crds/kind.ts'
import { InvalidObjectError, validate } from '../../shared/validate.ts'
import { StoreError, type Patch, type Preconditions, mergePatch } from '../port.ts'
import { plain, type Stored } from './table.ts'

/** Result of a write: the new object, without its new resourceVersion, or `none` when the write changes nothing. */
export interface Outcome {
  readonly type: 'none' | 'added' | 'modified' | 'deleted'
  readonly object: Stored
}

type Fields = Readonly<Record<string, unknown>>
/** Metadata that callers set. */
type OwnMeta = Pick<ObjectMeta, 'labels' | 'annotations' | 'finalizers' | 'ownerReferences'>
const OWN = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const

/** Validates an object. @throws StoreError `invalid` */
function checked(kind: Kind, object: Fields, old?: Stored): Fields {
  try {
    return validate(kind, object, old)
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error
    throw new StoreError('invalid', error.message, { cause: error, fields: error.fields })
  }
}

function reject(kind: Kind, field: string, message: string): never {
  throw new StoreError('invalid', `${kind.kind} is invalid: ${field} ${message}`, { fields: [{ field, message }] })
}

/** Returns the metadata that callers set, without empty maps and lists: like Kubernetes, the store treats `{}` as absent. */
function ownMeta(metadata: OwnMeta): OwnMeta {
  const entries = OWN.map((name) => [name, metadata[name]] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && Object.keys(value).length > 0))
}

const without = (fields: object, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
const fieldsOf = (value: unknown): Fields => plain(value) as Fields
const isDeleting = ({ metadata }: Stored): boolean => metadata.deletionTimestamp !== undefined
const hasFinalizers = ({ metadata }: Stored): boolean => (metadata.finalizers ?? []).length > 0

/** Checks preconditions. @throws StoreError `conflict` */
export function requireMatch({ metadata }: Stored, { resourceVersion, uid }: Preconditions): void {
  if (uid !== undefined && uid !== metadata.uid) {
    throw new StoreError('conflict', `${metadata.name} has been replaced by another object of that name`)
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw new StoreError('conflict', `${metadata.name} has changed: read it again`)
  }
}

/** Plans a creation. @throws StoreError `invalid` */
export function created(kind: Kind, draft: unknown, fresh: { readonly uid: string; readonly now: string }): Outcome {
  const given = without(fieldsOf(draft), ['status'])
  const body = checked(kind, given)
  const meta = given.metadata as ObjectMeta
  const metadata: ObjectMeta = {
    name: meta.name,
    ...(kind.namespaced && meta.namespace !== undefined && { namespace: meta.namespace }),
    uid: fresh.uid,
    resourceVersion: '',
    generation: 1,
    creationTimestamp: fresh.now,
    ...ownMeta(meta),
  }
  const status = kind === Namespace ? { status: { phase: 'Active' } } : {}
  return { type: 'added', object: { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...body, ...status } }
}

/** Plans an update to new contents. Metadata that only the store sets comes from `current`. */
function changed(kind: Kind, current: Stored, given: Fields): Outcome {
  const body = checked(kind, given, current)
  const own = ownMeta(given.metadata as OwnMeta)
  const before = new Set(current.metadata.finalizers)
  if (isDeleting(current) && own.finalizers?.some((name) => !before.has(name))) {
    reject(kind, 'metadata.finalizers', 'may not gain an entry while the object is being deleted')
  }
  const kept = without(current.metadata, OWN) as unknown as ObjectMeta
  const moved = kind.custom && !isDeepStrictEqual(body.spec, current.spec)
  const metadata: ObjectMeta = { ...kept, generation: kept.generation + (moved ? 1 : 0), ...own }
  const object: Stored = { apiVersion: current.apiVersion, kind: current.kind, metadata, ...body }
  if (isDeepStrictEqual(object, current)) return { type: 'none', object: current }
  // Garbage collection removes a Namespace when it is empty.
  return { type: isDeleting(object) && !hasFinalizers(object) && kind !== Namespace ? 'deleted' : 'modified', object }
}

const withStatusOf = (current: Stored, fields: Fields): Fields => {
  const rest = without(fields, ['status'])
  return current.status === undefined ? rest : { ...rest, status: current.status }
}

/** Plans a replacement. @throws StoreError `conflict` when uid or resourceVersion of `object` differ from `current`; `invalid` */
export function replaced(kind: Kind, current: Stored, object: unknown): Outcome {
  const given = fieldsOf(object)
  requireMatch(current, given.metadata ?? {})
  return changed(kind, current, withStatusOf(current, given))
}

/** Plans a merge patch of all but status. @throws StoreError `invalid` */
export function patched(kind: Kind, current: Stored, patch: Patch): Outcome {
  return changed(kind, current, withStatusOf(current, mergePatch(current, plain(patch)) as Fields))
}

/** Plans a merge patch of the status. @throws StoreError `invalid` */
export function statusPatched(kind: Kind, current: Stored, patch: unknown): Outcome {
  if (!('status' in kind.body.shape)) reject(kind, 'status', 'is not a known field')
  return changed(kind, current, { ...current, status: mergePatch(current.status, plain(patch)) })
}

/** Plans a deletion. Objects with finalizers, and Namespaces, get a deletionTimestamp; other objects are removed at once. */
export function deleted(kind: Kind, current: Stored, now: string): Outcome {
  if (isDeleting(current)) return { type: 'none', object: current }
  if (kind !== Namespace && !hasFinalizers(current)) return { type: 'deleted', object: current }
  const metadata: ObjectMeta = { ...current.metadata, deletionTimestamp: now }
  const status = kind === Namespace ? { status: { ...(current.status as Fields), phase: 'Terminating' } } : {}
  return { type: 'modified', object: { ...current, metadata, ...status } }
}
