import { isDeepStrictEqual } from 'node:util'
import { randomUUIDv7 } from 'node:crypto'
import type { ValueDigest } from '../../shared/audit-digest.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { auditChanges } from '../../journal/audit-changes.ts'
import { auditedObject, auditScopes } from '../../journal/audited-object.ts'
import type { AuditRecord } from '../../journal/port.ts'
import type { AdmissionRequest, Reviewed } from './review.ts'

const ACTIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete', CONNECT: undefined } as const

const SERVICE_ACCOUNT = 'system:serviceaccount:'
/** Service accounts of Mooring itself. The REST API records its own writes with the caller; the operator only carries out recorded changes. */
const MOORING_ACCOUNTS = ['mooring-apiserver', 'mooring-operator'].map((name) => `${SERVICE_ACCOUNT}${SYSTEM_NAMESPACE}:${name}`)

/**
 * Returns the audit entries of a write made without the REST API (docs/api.md, "Audit log"), one for each scope in which the resource is listed.
 * A write that leaves the desired state unchanged (status, metadata alone, dry run) has no entry.
 */
export function entriesOf(
  request: AdmissionRequest,
  { at, digest }: { readonly at: number; readonly digest: ValueDigest },
): readonly AuditRecord[] {
  const action = ACTIONS[request.operation]
  const { username } = request.userInfo
  const object = request.object ?? request.oldObject
  const audited = object && auditedObject(object)
  if (!action || !audited || leavesDesiredState(request)) return []
  return auditScopes(object).map((namespace) => ({
    ...{ id: randomUUIDv7(), at, namespace },
    actor: { name: username, kind: username.startsWith(SERVICE_ACCOUNT) ? 'serviceAccount' : 'user' },
    ...{ via: 'kubectl', action, resource: audited.resource },
    // Kubernetes sets the generation before it calls the webhook.
    generation: request.object?.metadata.generation ?? null,
    changes: auditChanges(auditedOf(request.oldObject), auditedOf(request.object), digest),
    ...{ sourceIp: null, requestId: null },
  }))
}

const auditedOf = (object: Reviewed) => object && auditedObject(object)

/** Whether the write leaves the desired state unchanged or another component records it. */
function leavesDesiredState({ operation, subResource, dryRun, object, oldObject, userInfo }: AdmissionRequest): boolean {
  if (MOORING_ACCOUNTS.includes(userInfo.username)) return true
  if (dryRun === true || (subResource ?? '') !== '') return true
  return operation === 'UPDATE' && isDeepStrictEqual(desiredOf(object), desiredOf(oldObject))
}

/** A RoleBinding has no spec. */
const desiredOf = (object: Reviewed) => object && [object.spec, object.subjects]
