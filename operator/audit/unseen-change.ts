import { createHash } from 'node:crypto'
import type { Kind, Resource } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { endOfPassword, TunnelPassword } from '../../crds/tunnel-password.ts'
import { type ValueDigest, auditChanges, auditedObject } from '../../journal/audit-entry.ts'
import { isFields } from '../../crds/formats/fields.ts'
import type { AuditedChange, AuditRecord } from '../../journal/port.ts'

/** Write that needs an entry in the audit log. */
export interface Change extends AuditedChange {
  /** Object after the write, or its last known state after a deletion. */
  readonly object: Resource<Kind>
  /** Last known state before the write. */
  readonly before: Resource<Kind> | undefined
  /** Time at which a cache showed the write, in milliseconds since the epoch. */
  readonly seenAt: number
}

/** Actor of changes that the operator makes itself: it deletes expired objects, and the passwords of a deleted tunnel. */
const OPERATOR = { name: 'mooring', kind: 'operator' } as const
/** Maximum number of writes recorded for one object that changed while no operator ran: the newest ones. */
const MOST = 32

/**
 * Returns the writes between two observations of an object. `before` is undefined for an object that was unknown, `after` for one that is
 * deleted. Writes to an object that is being deleted have no effect and are left out. Pure.
 */
export function changesBetween(
  before: Resource<Kind> | undefined,
  after: Resource<Kind> | undefined,
  seenAt: number,
): readonly Change[] {
  const object = after ?? before
  if (!object || (before && isDeleting(before))) return []
  const of = (generation: number | null): Change => ({ resource: object.metadata.uid, generation, object, before, seenAt })
  if (!after) return [of(null)]
  const last = specWrites(after)
  const first = Math.max(before ? specWrites(before) + 1 : 1, last - MOST + 1)
  const written = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => of(first + index))
  return isDeleting(after) ? [...written, of(null)] : written
}

const isDeleting = ({ metadata }: Resource<Kind>): boolean => metadata.deletionTimestamp !== undefined

/** Number of writes to the spec. Kubernetes counts the mark of a deletion as one more generation. */
const specWrites = (object: Resource<Kind>): number => object.metadata.generation - (isDeleting(object) ? 1 : 0)

/**
 * Returns the audit entry of a write that neither the API nor the webhook recorded. Its id is derived from the write and its time, so that
 * two operators that record the creation of an object produce the same entry. `ownersGone`: the object was deleted with its owners. Pure.
 */
export function unseenEntry(
  change: Change,
  { ownersGone, digest }: { readonly ownersGone: boolean; readonly digest: ValueDigest },
): AuditRecord {
  const { object, generation } = change
  const { namespace = '' } = object.metadata
  const at = timeOf(change)
  return {
    id: idOf(change, at),
    at,
    namespace,
    actor: generation === null && (ownersGone || isOver(change)) ? OPERATOR : null,
    via: 'unknown',
    action: generation === null ? 'delete' : generation === 1 ? 'create' : 'update',
    resource: resourceOf(object),
    generation,
    changes: changesOf(change, digest),
    sourceIp: null,
    requestId: null,
  }
}

/** Time of the write as the object records it, otherwise the time at which it was observed. */
function timeOf({ object: { metadata }, generation, seenAt }: Change): number {
  const { creationTimestamp, deletionTimestamp } = metadata
  const known = generation === 1 ? creationTimestamp : generation === null ? deletionTimestamp : undefined
  return known === undefined ? seenAt : Math.min(Date.parse(known), seenAt)
}

/** UUIDv7 (RFC 9562, section 5.7) whose random bits are a hash of the write. */
function idOf({ resource, generation }: AuditedChange, at: number): string {
  const time = at.toString(16).padStart(12, '0')
  const hash = createHash('sha256')
    .update(`${resource} ${generation ?? 'deleted'}`)
    .digest('hex')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`
}

/** Changed fields of a write. Empty when the state before or after that write is unknown. */
function changesOf({ object, before, generation }: Change, digest: ValueDigest): AuditRecord['changes'] {
  const audited = auditedObject(object)
  if (generation === null) return auditChanges(audited, undefined, digest)
  if (specWrites(object) !== generation) return []
  if (generation === 1) return auditChanges(undefined, audited, digest)
  return before && specWrites(before) === generation - 1 ? auditChanges(auditedObject(before), audited, digest) : []
}

/** Whether the expiry of the object, or the deadline of its claim, had passed. */
function isOver({ object, seenAt }: Change): boolean {
  if (object.kind === TunnelPassword.kind) return endOfPassword(object as TunnelPassword) <= seenAt
  const ends = [expiresAtOf(object), object.metadata.annotations?.[annotations.claimDeadline]]
  return ends.some((end) => typeof end === 'string' && Date.parse(end) <= seenAt)
}

/** Resource of an audit entry. RoleBindings are not watched here. */
function resourceOf(object: Resource<Kind>): AuditRecord['resource'] {
  const { kind, metadata } = object
  return auditedObject(object)?.resource ?? { kind, id: metadata.uid, name: metadata.name }
}

function expiresAtOf(object: Resource<Kind>): unknown {
  return 'spec' in object && isFields(object.spec) ? object.spec.expiresAt : undefined
}
