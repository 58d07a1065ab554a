import { z } from 'zod'
import { isDeepStrictEqual } from 'node:util'
import { randomUUIDv7 } from 'node:crypto'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { auditChanges } from '../../journal/audit-changes.ts'
import { auditedObject, auditScopes } from '../../journal/audited-object.ts'
import type { AuditRecord } from '../../journal/port.ts'

const ReviewedObject = z.looseObject({
  kind: z.string().max(63),
  metadata: z.looseObject({
    uid: z.string().max(128),
    name: z.string().max(253),
    namespace: z.string().max(63).optional(),
    generation: z.int().min(1).optional(),
    ownerReferences: z.array(z.looseObject({ kind: z.string(), uid: z.string() })).optional(),
  }),
  spec: z.record(z.string(), z.unknown()).optional(),
  status: z.record(z.string(), z.unknown()).optional(),
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }).optional(),
  subjects: z.array(z.looseObject({ name: z.string() })).optional(),
})
const Reviewed = ReviewedObject.nullish().transform((object) => object ?? undefined)
export type Reviewed = z.output<typeof Reviewed>

/** AdmissionReview v1 request of the Kubernetes API server: the fields that an audit entry needs. */
export const AdmissionReview = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({
    uid: z.string().max(128),
    subResource: z.string().optional(),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    userInfo: z.looseObject({ username: z.string().max(1024) }),
    object: Reviewed,
    oldObject: Reviewed,
    dryRun: z.boolean().nullish(),
  }),
})
export type AdmissionRequest = z.output<typeof AdmissionReview>['request']

/** AdmissionReview response that allows the write. */
export const allowed = (uid: string) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, allowed: true },
})

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
