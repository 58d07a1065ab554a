import { RoleBinding } from '../core.ts'
import { CUSTOM_KINDS } from '../index.ts'
import { CATALOG_ROLE, clusterRoleOf, GROUP, PLATFORM_ADMIN_ROLE } from '../names.ts'

/** Kubernetes RBAC PolicyRule (rbac.authorization.k8s.io/v1). Names are exact: no wildcards, no subresources. */
export interface PolicyRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

export interface ClusterRole {
  readonly name: string
  readonly rules: readonly PolicyRule[]
}

const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'update', 'patch', 'delete']

const pluralsOf = (namespaced: boolean) =>
  CUSTOM_KINDS.filter((kind) => kind.namespaced === namespaced).map((kind) => kind.plural)

/** Kinds that tenants create. */
const TENANT_KINDS = ['sharedinstances', 'dedicateddatabases', 'tunnels', 'tunnelpasswords', 'tunnelwebhooks']
const NAMESPACED = [...new Set([...pluralsOf(true), ...TENANT_KINDS])].sort()
const CLUSTER_SCOPED = [...pluralsOf(false)].sort()

/** Kinds of the catalog: plans, regions and endpoints. Their objects name no tenant. */
export const CATALOG_KINDS = ['plans', 'regions', 'tunnelendpoints']

const viewer: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: NAMESPACED, verbs: READ },
  { apiGroups: [RoleBinding.group], resources: [RoleBinding.plural], verbs: READ },
  // The operator reports failures as Events. `kubectl describe` reads the core group, `kubectl events` the new group.
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: READ },
]
const editor: readonly PolicyRule[] = [
  ...viewer,
  { apiGroups: [GROUP], resources: TENANT_KINDS, verbs: WRITE },
  // Credentials are read from their Secret.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
]
const admin: readonly PolicyRule[] = [
  ...editor,
  { apiGroups: [GROUP], resources: ['apitokens'], verbs: WRITE },
  { apiGroups: [RoleBinding.group], resources: [RoleBinding.plural], verbs: WRITE },
]
const platformAdmin: readonly PolicyRule[] = [
  ...admin,
  { apiGroups: [GROUP], resources: [...CLUSTER_SCOPED, 'databaseservers', 'databasearchives'], verbs: [...READ, ...WRITE] },
  // Namespaces are created and deleted through their TenantNamespace.
  { apiGroups: [''], resources: ['namespaces'], verbs: READ },
]

/**
 * Mooring's roles, weakest first. Each includes all rights of the role before it, so an admin may grant all of them (RBAC forbids
 * granting rights that the granter does not have). Only the operator writes status.
 */
export const CLUSTER_ROLES: readonly ClusterRole[] = [
  { name: clusterRoleOf('viewer'), rules: viewer },
  { name: clusterRoleOf('editor'), rules: editor },
  { name: clusterRoleOf('admin'), rules: admin },
  { name: PLATFORM_ADMIN_ROLE, rules: platformAdmin },
]

/** ClusterRole for the catalog. Its kinds are cluster-scoped, so a RoleBinding in a tenant namespace cannot grant access to them. */
export const CATALOG_CLUSTER_ROLE: ClusterRole = {
  name: CATALOG_ROLE,
  rules: [{ apiGroups: [GROUP], resources: CATALOG_KINDS, verbs: READ }],
}
