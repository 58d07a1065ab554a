import { isDeepStrictEqual } from 'node:util'
import { type Namespace, RoleBinding } from '../../crds/core.ts'
import type { Draft, DraftMeta } from '../../crds/kind.ts'
import {
  annotations,
  clusterRoleOf,
  FINALIZER,
  isSlug,
  labels,
  namespaceName,
  roleGroup,
  ROLES,
  SERVICE_ACCOUNTS,
  SYSTEM_NAMESPACE,
} from '../../crds/names.ts'
import { type TenantNamespace, TenantNamespaceSpec } from '../../crds/tenant-namespace.ts'

type Binding = Draft<typeof RoleBinding>

/** Namespace of a tenant namespace: its two slugs as labels, its display name as an annotation. */
export function newNamespace({ metadata, spec }: TenantNamespace): Draft<typeof Namespace> {
  const createdBy = metadata.annotations?.[annotations.createdBy]
  return {
    metadata: {
      name: metadata.name,
      labels: { [labels.organization]: spec.organization, [labels.namespace]: spec.namespace },
      annotations: { ...displayName(spec), ...(createdBy !== undefined && { [annotations.createdBy]: createdBy }) },
    },
  }
}

const displayName = ({ displayName: name }: TenantNamespace['spec']) =>
  name === undefined ? {} : { [annotations.displayName]: name }

/** Missing labels and annotations of the Namespace as a merge patch of its metadata; undefined when it has all of them. */
export function missingMarks(
  { spec }: TenantNamespace,
  { metadata }: Namespace,
): Pick<DraftMeta, 'labels' | 'annotations'> | undefined {
  const desired = {
    labels: { [labels.organization]: spec.organization, [labels.namespace]: spec.namespace },
    annotations: displayName(spec),
  }
  const has = {
    labels: { ...metadata.labels, ...desired.labels },
    annotations: { ...metadata.annotations, ...desired.annotations },
  }
  return isDeepStrictEqual(has, { labels: { ...metadata.labels }, annotations: { ...metadata.annotations } })
    ? undefined
    : desired
}

/**
 * Slugs in a Namespace's labels; undefined unless they are valid and belong to the Namespace's name: others would transfer it to another
 * tenant.
 */
export function slugsOf({ metadata }: Namespace): Pick<TenantNamespace['spec'], 'organization' | 'namespace'> | undefined {
  const organization = metadata.labels?.[labels.organization] ?? ''
  const namespace = metadata.labels?.[labels.namespace] ?? ''
  if (!isSlug(organization) || !isSlug(namespace)) return undefined
  return namespaceName(organization, namespace) === metadata.name ? { organization, namespace } : undefined
}

/** TenantNamespace of a Namespace that was created without one. It takes over the annotations of its POST, the Idempotency-Key included. */
export function adopting(
  { metadata }: Namespace,
  slugs: Pick<TenantNamespace['spec'], 'organization' | 'namespace'>,
): Draft<typeof TenantNamespace> {
  const name = TenantNamespaceSpec.shape.displayName.safeParse(metadata.annotations?.[annotations.displayName])
  return {
    metadata: {
      name: metadata.name,
      finalizers: [FINALIZER],
      labels: picked(metadata.labels, [labels.idempotencyKey]),
      annotations: picked(metadata.annotations, [annotations.createdBy, annotations.requestHash]),
    },
    spec: { ...slugs, ...(name.data !== undefined && { displayName: name.data }) },
  }
}

const picked = (from: Readonly<Record<string, string>> | undefined, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(from ?? {}).filter(([name]) => names.includes(name)))

/** RoleBindings of a tenant namespace: one per role, for the group in its tokens; with `serviceAccounts`, one for each component too. */
export function bindingsOf(namespace: string, { serviceAccounts }: { readonly serviceAccounts: boolean }): readonly Binding[] {
  const groups = ROLES.map((role) =>
    binding(namespace, `mooring-${role}`, {
      clusterRole: clusterRoleOf(role),
      subject: { kind: 'Group', apiGroup: RoleBinding.group, name: roleGroup(namespace, role) },
    }),
  )
  const accounts = SERVICE_ACCOUNTS.map(({ name, clusterRole }) =>
    binding(namespace, name, { clusterRole, subject: { kind: 'ServiceAccount', name, namespace: SYSTEM_NAMESPACE } }),
  )
  return serviceAccounts ? [...groups, ...accounts] : groups
}

interface Grant {
  readonly clusterRole: string
  readonly subject: RoleBinding['subjects'][number]
}

function binding(namespace: string, name: string, { clusterRole, subject }: Grant): Binding {
  return {
    metadata: { namespace, name, labels: { [labels.managedBy]: 'mooring' } },
    roleRef: { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: clusterRole },
    subjects: [subject],
  }
}
