import { isDeepStrictEqual } from 'node:util'
import { randomUUIDv7 } from 'node:crypto'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { auditChanges } from '../../journal/audit-changes.ts'
import { auditedObject, auditScopes } from '../../journal/audited-object.ts'
import type { AuditRecord } from '../../journal/port.ts'
import type { AdmissionRequest, Reviewed } from './review.ts'

const ACTIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete', CONNECT: undefined } as const

const SERVICE_ACCOUNT = 'system:serviceaccount:'
/** Of the REST API, which writes its own entries with the caller in them, and of the operator, whose writes carry out what others want. */
const OURS = ['mooring-apiserver', 'mooring-operator'].map((name) => `${SERVICE_ACCOUNT}${SYSTEM_NAMESPACE}:${name}`)

/**
 * The entries of a write that did not come by REST (contract, "Events", 3), one in each place where the resource is looked for. None where the
 * desired state stays: a status, metadata alone, a dry run.
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
    // Set before validation already (Kubernetes, rest.BeforeCreate and BeforeUpdate).
    generation: request.object?.metadata.generation ?? null,
    changes: auditChanges(auditedOf(request.oldObject), auditedOf(request.object), digest),
    ...{ sourceIp: null, requestId: null },
  }))
}

const auditedOf = (object: Reviewed) => object && auditedObject(object)

/** Whether the desired state stays as it is, or another component records the write. */
function leavesDesiredState({ operation, subResource, dryRun, object, oldObject, userInfo }: AdmissionRequest): boolean {
  if (OURS.includes(userInfo.username)) return true
  if (dryRun === true || (subResource ?? '') !== '') return true
  return operation === 'UPDATE' && isDeepStrictEqual(desiredOf(object), desiredOf(oldObject))
}

/** A RoleBinding has no spec. */
const desiredOf = (object: Reviewed) => object && [object.spec, object.subjects]
