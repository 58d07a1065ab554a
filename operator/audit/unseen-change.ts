import { createHash } from 'node:crypto'
import type { Kind, Resource } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { endOfPassword, TunnelPassword } from '../../crds/tunnel-password.ts'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import { isFields } from '../../crds/formats/fields.ts'
import { auditChanges } from '../../journal/audit-changes.ts'
import { auditedObject } from '../../journal/audited-object.ts'
import type { AuditedChange, AuditRecord } from '../../journal/port.ts'

/** A write that the audit log should have an entry of. */
export interface Change extends AuditedChange {
  /** The object that it led to, or the last that was seen of one that is deleted. */
  readonly object: Resource<Kind>
  /** What was seen before it. */
  readonly before: Resource<Kind> | undefined
  /** When it was seen, in milliseconds since the epoch. */
  readonly seenAt: number
}

/** What is not a person's change: the operator ends what is past its time, and passwords go with their tunnel. */
const OPERATOR = { name: 'mooring', kind: 'operator' } as const
/** Of an object that changed more often while nobody looked, the newest writes are told alone. */
const MOST = 32

/**
 * The writes between two looks at an object; `before` undefined: it was not known, `after` undefined: it is gone. What is written to an
 * object that is being deleted already comes to nothing and is none. Pure.
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
  const last = wishes(after)
  const first = Math.max(before ? wishes(before) + 1 : 1, last - MOST + 1)
  const written = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => of(first + index))
  return isDeleting(after) ? [...written, of(null)] : written
}

const isDeleting = ({ metadata }: Resource<Kind>): boolean => metadata.deletionTimestamp !== undefined

/** Kubernetes counts the mark of a deletion as a generation of its own. */
const wishes = (object: Resource<Kind>): number => object.metadata.generation - (isDeleting(object) ? 1 : 0)

/**
 * The entry of a write that nobody recorded. Its id follows from the write and its time, so that two operators who tell of one object's
 * creation tell the same. `ownersGone`: it went with its owners. Pure.
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

/** Where the object itself does not know, when it was seen. */
function timeOf({ object: { metadata }, generation, seenAt }: Change): number {
  const { creationTimestamp, deletionTimestamp } = metadata
  const known = generation === 1 ? creationTimestamp : generation === null ? deletionTimestamp : undefined
  return known === undefined ? seenAt : Math.min(Date.parse(known), seenAt)
}

/** A UUIDv7 (RFC 9562, section 5.7) whose random bits are a hash of what it tells of. */
function idOf({ resource, generation }: AuditedChange, at: number): string {
  const time = at.toString(16).padStart(12, '0')
  const hash = createHash('sha256')
    .update(`${resource} ${generation ?? 'deleted'}`)
    .digest('hex')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`
}

/** What is known for sure: nobody saw what another write in between had changed. */
function changesOf({ object, before, generation }: Change, digest: ValueDigest): AuditRecord['changes'] {
  const audited = auditedObject(object)
  if (generation === null) return auditChanges(audited, undefined, digest)
  if (wishes(object) !== generation) return []
  if (generation === 1) return auditChanges(undefined, audited, digest)
  return before && wishes(before) === generation - 1 ? auditChanges(auditedObject(before), audited, digest) : []
}

/** Whether its time had come, or that of whoever waited for it. */
function isOver({ object, seenAt }: Change): boolean {
  if (object.kind === TunnelPassword.kind) return endOfPassword(object as TunnelPassword) <= seenAt
  const ends = [expiresAtOf(object), object.metadata.annotations?.[annotations.claimDeadline]]
  return ends.some((end) => typeof end === 'string' && Date.parse(end) <= seenAt)
}

/** No RoleBinding is watched here. */
function resourceOf(object: Resource<Kind>): AuditRecord['resource'] {
  const { kind, metadata } = object
  return auditedObject(object)?.resource ?? { kind, id: metadata.uid, name: metadata.name }
}

function expiresAtOf(object: Resource<Kind>): unknown {
  return 'spec' in object && isFields(object.spec) ? object.spec.expiresAt : undefined
}
