import { RoleBinding } from './core.ts'
import { CUSTOM_KINDS } from './index.ts'
import { CATALOG_ROLE, clusterRoleOf, GROUP, PLATFORM_ADMIN_ROLE } from './names.ts'

/** A rule in the form of Kubernetes RBAC (rbac.authorization.k8s.io/v1 PolicyRule). Names are exact: no wildcards, no subresources. */
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

/** What tenants make. Roles name the kinds that are still to come too, so that a kind never arrives without its rules. */
const TENANT_KINDS = ['sharedinstances', 'dedicateddatabases', 'tunnels', 'tunnelpasswords']
const NAMESPACED = [...new Set([...pluralsOf(true), ...TENANT_KINDS])].sort()
const CLUSTER_SCOPED = [...pluralsOf(false)].sort()

/** What there is to choose from, and where clients connect to. No tenant is named there. */
export const CATALOG_KINDS = ['plans', 'regions', 'tunnelendpoints']

const viewer: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: NAMESPACED, verbs: READ },
  { apiGroups: [RoleBinding.group], resources: [RoleBinding.plural], verbs: READ },
  // Failures are told as Events; kubectl reads them in the old group, and `kubectl events` in the new one.
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: READ },
]
const editor: readonly PolicyRule[] = [
  ...viewer,
  { apiGroups: [GROUP], resources: TENANT_KINDS, verbs: WRITE },
  // To read a credential is to get its Secret.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
]
const admin: readonly PolicyRule[] = [
  ...editor,
  { apiGroups: [GROUP], resources: ['apitokens'], verbs: WRITE },
  { apiGroups: [RoleBinding.group], resources: [RoleBinding.plural], verbs: WRITE },
]
const platformAdmin: readonly PolicyRule[] = [
  ...admin,
  { apiGroups: [GROUP], resources: [...CLUSTER_SCOPED, 'databaseservers'], verbs: [...READ, ...WRITE] },
  // To make and delete one is to make and delete its TenantNamespace.
  { apiGroups: [''], resources: ['namespaces'], verbs: READ },
]

/**
 * Mooring's roles, weakest first; each holds all of the one before it, which is also what lets an admin hand them out (RBAC
 * refuses to grant what the granter does not have). None writes a status: that is the operator's alone.
 */
export const CLUSTER_ROLES: readonly ClusterRole[] = [
  { name: clusterRoleOf('viewer'), rules: viewer },
  { name: clusterRoleOf('editor'), rules: editor },
  { name: clusterRoleOf('admin'), rules: admin },
  { name: PLATFORM_ADMIN_ROLE, rules: platformAdmin },
]

/** Of no tenant: cluster-scoped kinds, which a RoleBinding cannot show to a namespace's members. */
export const CATALOG_CLUSTER_ROLE: ClusterRole = {
  name: CATALOG_ROLE,
  rules: [{ apiGroups: [GROUP], resources: CATALOG_KINDS, verbs: READ }],
}
