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

/** The Namespace of a tenant namespace: its two slugs as labels, what people call it as an annotation. */
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

/** Labels and annotations that the Namespace lacks, as a merge patch of its metadata; undefined when it has them all. */
export function missingMarks(
  { spec }: TenantNamespace,
  { metadata }: Namespace,
): Pick<DraftMeta, 'labels' | 'annotations'> | undefined {
  const wanted = {
    labels: { [labels.organization]: spec.organization, [labels.namespace]: spec.namespace },
    annotations: displayName(spec),
  }
  const has = {
    labels: { ...metadata.labels, ...wanted.labels },
    annotations: { ...metadata.annotations, ...wanted.annotations },
  }
  return isDeepStrictEqual(has, { labels: { ...metadata.labels }, annotations: { ...metadata.annotations } }) ? undefined : wanted
}

/** The slugs that a Namespace's labels name; undefined when they are none of a tenant, or of another Namespace's name: that would give it away. */
export function slugsOf({ metadata }: Namespace): Pick<TenantNamespace['spec'], 'organization' | 'namespace'> | undefined {
  const organization = metadata.labels?.[labels.organization] ?? ''
  const namespace = metadata.labels?.[labels.namespace] ?? ''
  if (!isSlug(organization) || !isSlug(namespace)) return undefined
  return namespaceName(organization, namespace) === metadata.name ? { organization, namespace } : undefined
}

/** The TenantNamespace of a Namespace that was made without one. What its POST left on the Namespace goes along, Idempotency-Key included. */
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

/** One RoleBinding a role, for the group that its tokens carry; with `serviceAccounts`, one for each of the two components too. */
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
