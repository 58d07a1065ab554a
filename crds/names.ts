/** API group and version of every custom resource. */
export const GROUP = 'mooring.dev'
export const VERSION = 'v1alpha1'

/** Finalizer that the operator sets at creation and removes only after verified clean-up. */
export const FINALIZER = 'mooring.dev/cleanup'

export const SYSTEM_NAMESPACE = 'mooring-system'
export const SHARED_NAMESPACE = 'mooring-shared'

/** DatabaseServer in mooring-shared that holds the journal, unless an external server holds it. */
export const JOURNAL_SERVER = 'journal'
/** Database of the journal on that server. */
export const JOURNAL_DATABASE = 'mooring_journal'

export const labels = {
  organization: 'mooring.dev/organization',
  namespace: 'mooring.dev/namespace',
  /** On a credential Secret: the DatabaseServer chosen for the instance. It is set before the status names the server. */
  server: 'mooring.dev/server',
  /** On a Secret with a certificate: the TunnelEndpoint whose edges use it. */
  endpoint: 'mooring.dev/endpoint',
  /** `"true"` on a Secret with the host keys of a domain. */
  hostKeys: 'mooring.dev/host-keys',
  /** On objects that Mooring made itself, such as the three group RoleBindings of a namespace. */
  managedBy: 'app.kubernetes.io/managed-by',
  /** On an object that a POST with an Idempotency-Key made under a name of the client's choice: hash of the key and its owner. */
  idempotencyKey: 'mooring.dev/idempotency-key',
} as const

export const annotations = {
  /** SHA-256 of the body of the POST that made the object; distinguishes a repeated request from a reused Idempotency-Key. */
  requestHash: 'mooring.dev/request-hash',
  createdBy: 'mooring.dev/created-by',
  /** Time of creation, RFC 3339 UTC in milliseconds. Kubernetes keeps whole seconds, which cannot order objects of the same second. */
  createdAt: 'mooring.dev/created-at',
  /** Time at which a request last changed the spec, RFC 3339 UTC. */
  updatedAt: 'mooring.dev/updated-at',
  /** On a Tunnel: its hostname, with a MAC over hostname and tunnel name. A tunnel restored from a backup keeps its hostname by it. */
  hostname: 'mooring.dev/hostname',
  /** On the Secret of a tunnel's certificate: time of issue, RFC 3339 UTC. `notBefore` is earlier, for clients with a slow clock. */
  obtainedAt: 'mooring.dev/obtained-at',
  /** On the Secret of a tunnel's certificate that was obtained by ACME: URL of the directory. */
  acmeDirectory: 'mooring.dev/acme-directory',
  /** On the same Secret: identifier of the certificate (RFC 9773, section 4.1). */
  acmeId: 'mooring.dev/acme-id',
  /** On the Secret of a certificate that is a copy of the administrator's own: name of the Secret that it was copied from. */
  copiedFrom: 'mooring.dev/copied-from',
  /** On an ApiToken made with an Idempotency-Key: salt from which, with the installation's secret, the token can be derived again. */
  tokenSalt: 'mooring.dev/token-salt',
  /** RFC 3339 UTC. The operator deletes an instance that is not claimed by then: the client has gone and cannot retry its request. */
  claimDeadline: 'mooring.dev/claim-deadline',
  displayName: 'mooring.dev/display-name',
  /** On a credential Secret: the `spec.passwordVersion` of its password. */
  passwordVersion: 'mooring.dev/password-version',
  /** On a credential Secret: random UUID of its password, by which the status names the password in force. Says nothing about the password. */
  passwordId: 'mooring.dev/password-id',
  /** `"true"` releases a resource whose database server is unreachable; the sweeper removes the rest later. */
  forceDelete: 'mooring.dev/force-delete',
  /** `"true"` on a DedicatedDatabase: its backups outlive it for their retention. */
  keepBackups: 'mooring.dev/keep-backups',
  /** On a DedicatedDatabase restored from a database of another namespace: the API server's permission, a MAC over both. */
  restoreGrant: 'mooring.dev/restore-grant',
  /** `"true"` permits the deletion of a Region or TunnelEndpoint that has databases or tunnels, and by kubectl that of a DedicatedDatabase. */
  allowDeletion: 'mooring.dev/allow-deletion',
  /** `"true"` on the Namespace mooring-shared permits its deletion, and that uninstalling deletes all databases. */
  deleteData: 'mooring.dev/delete-data',
  /** On a CustomResourceDefinition: version of the program that applied it. */
  version: 'mooring.dev/version',
} as const

/** Slug of an organization or namespace (docs/api.md, "Organizations and namespaces"). */
export const SLUG = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/
export const SLUG_MAX = 30
export const SLUG_RULE = 'must be lower-case letters, digits and single hyphens between them, a letter first'

export function isSlug(text: string): boolean {
  return text.length <= SLUG_MAX && SLUG.test(text)
}

/** Joins two slugs: `acme`, `prod` → `acme--prod`. Slugs have no double hyphen, so the name can be split again. */
export function namespaceName(organization: string, namespace: string): string {
  return `${organization}--${namespace}`
}

/** Splits the name of a Namespace into its slugs: `acme--prod` → `acme`, `prod`. Slugs that a name lacks are empty. */
export function slugsOf(name = ''): { readonly organization: string; readonly namespace: string } {
  const [organization = '', namespace = ''] = name.split('--')
  return { organization, namespace }
}

/** Splits `acme/prod` into its slugs. Returns undefined for any other text. */
export function parseNamespacePath(text: string): { readonly organization: string; readonly namespace: string } | undefined {
  const [organization = '', namespace = '', ...rest] = text.split('/')
  return rest.length === 0 && isSlug(organization) && isSlug(namespace) ? { organization, namespace } : undefined
}

/** Prefix of user names that Kubernetes reserves. */
export const KUBERNETES_PREFIX = 'system:'
/** Prefixes that no issuer gives to its users and groups: reserved for Kubernetes and for Mooring. */
export const RESERVED_NAMES = ['mooring', 'system'] as const
/** Name of Mooring's own issuer; its users are `local:…`. */
export const OWN_ISSUER = 'local'
/** Allowed names of issuers. */
export const ISSUER_NAME = /^[a-z][a-z0-9-]{0,30}$/

/** Whether a user or group name has a reserved prefix. */
export const isReserved = (name: string): boolean => RESERVED_NAMES.some((reserved) => name.startsWith(`${reserved}:`))

/** Roles of a member in a namespace, weakest first. */
export const ROLES = ['viewer', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** ClusterRole that a member's RoleBinding refers to. */
export const clusterRoleOf = (role: Role): string => `mooring-${role}`

/**
 * Service accounts of the two components in mooring-system, with the ClusterRole of each in tenant namespaces. In each tenant namespace
 * a RoleBinding with the name of the service account binds it. Cluster mode only; the bindings grant no rights outside tenant namespaces.
 */
export const SERVICE_ACCOUNTS = [
  { name: 'mooring-operator', clusterRole: 'mooring-tenant-operator' },
  { name: 'mooring-apiserver', clusterRole: 'mooring-tenant-apiserver' },
] as const

/** ClusterRole for reading the catalog (plans, regions, tunnel endpoints). In cluster mode the chart binds it to the subjects in its values. */
export const CATALOG_ROLE = 'mooring-catalog-viewer'
export const PLATFORM_ADMIN_ROLE = 'mooring-platform-admin'
/** Group bound to {@link PLATFORM_ADMIN_ROLE}. Only Mooring's own issuer assigns it. */
export const PLATFORM_ADMIN_GROUP = 'mooring:platform-admins'

/**
 * Returns the group that API tokens and role tokens of a namespace carry; a RoleBinding in the tenant namespace binds it to the role.
 * The prefix `mooring:` is reserved: groups of an external issuer always start with the name of that issuer.
 */
export const roleGroup = (namespace: string, role: Role): string => `mooring:${namespace}:${role}`
