import { isDeepStrictEqual } from 'node:util'
import type { Namespace, RoleBinding } from '../../crds/core.ts'
import type { Draft } from '../../crds/kind.ts'
import { FINALIZER } from '../../crds/names.ts'
import { type TenantNamespace, TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import { notReady, ready, type Decision } from '../../store/conditions.ts'
import { missingMarks, slugsOf } from './resources.ts'

/** Observed state that a decision may depend on; read once by observe.ts. */
export interface Observed {
  readonly tenant: TenantNamespace | undefined
  readonly namespace: Namespace | undefined
  /** RoleBindings in the Namespace, by name. */
  readonly bindings: ReadonlyMap<string, RoleBinding>
  /** Desired RoleBindings. */
  readonly desired: readonly Draft<typeof RoleBinding>[]
  /** Whether the organization exists. */
  readonly organization: boolean
  /** Reason why objects of the Namespace cannot be cleaned up now. */
  readonly blocked: string | undefined
}

/** Actions in order. A crash after any of them is harmless. */
export type Action =
  /** `adopt`: creates the TenantNamespace of a Namespace that was created without one. */
  | { readonly do: 'adopt' | 'add-finalizer' | 'make-namespace' | 'mark-namespace' | 'make-organization' }
  | { readonly do: 'bind'; readonly binding: Draft<typeof RoleBinding>; readonly found: RoleBinding | undefined }
  /** `follow`: the Namespace is deleted or being deleted, so its TenantNamespace is deleted. */
  | { readonly do: 'follow' | 'delete-namespace' | 'release' }

export interface Plan {
  readonly actions: readonly Action[]
  /** Ready condition; undefined when there is no status to write. */
  readonly decision?: Decision
  /** Reason of the result when there is no condition. */
  readonly reason?: string
}

/**
 * Decides what a tenant namespace needs. Pure: each branch is a row in plan.test.ts.
 *
 *     TenantNamespace ──made──► Namespace, bindings ──► Ready          Namespace with our labels ──► its TenantNamespace is made
 *     TenantNamespace ──deleted──► Namespace is deleted, waited for ──► gone
 *     Namespace ──deleted by others──► its TenantNamespace is deleted ──► gone once the Namespace is
 */
export function planNamespace(observed: Observed): Plan {
  const { tenant, namespace } = observed
  if (!tenant) return planStray(namespace)
  if (tenant.metadata.deletionTimestamp !== undefined) return planDeletion(tenant, observed)
  const plan = planLiving(tenant, observed)
  const guarded = tenant.metadata.finalizers?.includes(FINALIZER) === true
  return guarded ? plan : { ...plan, actions: [{ do: 'add-finalizer' }, ...plan.actions] }
}

function planStray(namespace: Namespace | undefined): Plan {
  if (!namespace || isTerminating(namespace)) return { actions: [], reason: 'Gone' }
  return slugsOf(namespace) ? { actions: [{ do: 'adopt' }], reason: 'Adopted' } : { actions: [], reason: 'NotTenant' }
}

function planLiving(tenant: TenantNamespace, observed: Observed): Plan {
  const { namespace } = observed
  if (!namespace) {
    if (tenant.status?.namespaceUid !== undefined) return { actions: [{ do: 'follow' }], reason: 'NamespaceGone' }
    return { actions: [{ do: 'make-namespace' }, ...furnish(observed)], decision: bound }
  }
  if (isTerminating(namespace)) {
    if (isItsOwn(tenant, namespace)) return { actions: [{ do: 'follow' }], reason: 'NamespaceGone' }
    return {
      actions: [],
      decision: notReady(TenantNamespaceReason.NamespaceTerminating, 'an earlier Namespace of this name is being deleted'),
    }
  }
  if (!isOurs(tenant, namespace)) {
    return {
      actions: [],
      decision: notReady(TenantNamespaceReason.NamespaceTaken, 'a Namespace of this name exists without our labels'),
    }
  }
  const marks: readonly Action[] = missingMarks(tenant, namespace) ? [{ do: 'mark-namespace' }] : []
  return { actions: [...marks, ...furnish(observed)], decision: bound }
}

const bound = ready(TenantNamespaceReason.Bound, 'the Namespace exists, with its roles')

function furnish({ bindings, desired, organization }: Observed): readonly Action[] {
  const bind = desired
    .map((binding) => ({ do: 'bind' as const, binding, found: bindings.get(binding.metadata.name) }))
    .filter(({ binding, found }) => !found || !grants(found, binding))
  return organization ? bind : [...bind, { do: 'make-organization' }]
}

/** Whether a RoleBinding grants the role to the desired subjects. Further subjects are allowed. */
function grants(found: RoleBinding, { roleRef, subjects = [] }: Draft<typeof RoleBinding>): boolean {
  return (
    found.roleRef.name === roleRef.name && found.roleRef.kind === roleRef.kind && missingSubjects(found, subjects).length === 0
  )
}

/** Subjects of `wanted` that a RoleBinding lacks. */
export function missingSubjects(found: RoleBinding, desired: RoleBinding['subjects']): RoleBinding['subjects'] {
  const names = ({ kind, name, namespace }: RoleBinding['subjects'][number]) => [kind, name, namespace]
  return desired.filter((subject) => !found.subjects.some((known) => isDeepStrictEqual(names(known), names(subject))))
}

function planDeletion(tenant: TenantNamespace, { namespace, blocked }: Observed): Plan {
  if (!tenant.metadata.finalizers?.includes(FINALIZER)) return { actions: [], reason: TenantNamespaceReason.Deleting }
  if (!namespace || !isOurs(tenant, namespace)) return { actions: [{ do: 'release' }], reason: TenantNamespaceReason.Deleting }
  const decision =
    blocked === undefined
      ? notReady(TenantNamespaceReason.Deleting, 'the Namespace is being removed with all that is in it')
      : notReady(TenantNamespaceReason.CleanupBlocked, blocked)
  return { actions: isTerminating(namespace) ? [] : [{ do: 'delete-namespace' }], decision }
}

const isTerminating = ({ metadata }: Namespace): boolean => metadata.deletionTimestamp !== undefined

/** Whether this is the Namespace that was created or adopted for the TenantNamespace. */
const isItsOwn = ({ status }: TenantNamespace, { metadata }: Namespace): boolean => status?.namespaceUid === metadata.uid

/** Whether the Namespace belongs to the tenant: it is its own, or has its labels after a crash or a restored backup. */
function isOurs(tenant: TenantNamespace, namespace: Namespace): boolean {
  return isItsOwn(tenant, namespace) || slugsOf(namespace) !== undefined
}
