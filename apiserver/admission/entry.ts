import { isDeepStrictEqual } from 'node:util'
import { randomUUIDv7 } from 'node:crypto'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { auditedResource } from '../../journal/audited-resource.ts'
import type { AuditRecord } from '../../journal/port.ts'
import { specChanges } from '../../journal/spec-changes.ts'
import type { AdmissionRequest } from './review.ts'

const ACTIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete', CONNECT: undefined } as const

const SERVICE_ACCOUNT = 'system:serviceaccount:'
/** Of the REST API, which writes its own entries with the caller in them, and of the operator, whose writes are nobody's wishes. */
const OURS = ['mooring-apiserver', 'mooring-operator'].map((name) => `${SERVICE_ACCOUNT}${SYSTEM_NAMESPACE}:${name}`)

/**
 * The entry of a write that did not come by REST (contract, "Events", 3). Undefined where nothing of what somebody wished has changed: a
 * status, marks of an object alone, a trial.
 */
export function entryOf(request: AdmissionRequest, at: number): AuditRecord | undefined {
  const action = ACTIONS[request.operation]
  const { username } = request.userInfo
  const object = request.object ?? request.oldObject
  if (!action || !object || isNoWish(request)) return undefined
  return {
    id: randomUUIDv7(),
    at,
    namespace: object.metadata.namespace,
    actor: { name: username, kind: username.startsWith(SERVICE_ACCOUNT) ? 'serviceAccount' : 'user' },
    via: 'kubectl',
    action,
    resource: auditedResource(object, object.spec),
    // Set before validation already (Kubernetes, rest.BeforeCreate and BeforeUpdate).
    generation: request.object?.metadata.generation ?? null,
    changes: specChanges(request.oldObject?.spec, request.object?.spec),
    sourceIp: null,
    requestId: null,
  }
}

/** Whether it leaves every wish as it is, or somebody else tells of it. */
function isNoWish({ operation, subResource, dryRun, object, oldObject, userInfo }: AdmissionRequest): boolean {
  if (OURS.includes(userInfo.username)) return true
  if (dryRun === true || (subResource ?? '') !== '') return true
  return operation === 'UPDATE' && isDeepStrictEqual(object?.spec, oldObject?.spec)
}
