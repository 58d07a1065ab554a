/** API group and version of every custom resource. */
export const GROUP = 'mooring.dev'
export const VERSION = 'v1alpha1'

/** Set at creation, removed only after verified clean-up. */
export const FINALIZER = 'mooring.dev/cleanup'

export const SYSTEM_NAMESPACE = 'mooring-system'
export const SHARED_NAMESPACE = 'mooring-shared'

/** DatabaseServer in mooring-shared with the journal, unless there is one outside, and the database on it. */
export const JOURNAL_SERVER = 'journal'
export const JOURNAL_DATABASE = 'mooring_journal'

export const labels = {
  organization: 'mooring.dev/organization',
  namespace: 'mooring.dev/namespace',
  /** On a credential Secret: the DatabaseServer chosen for the instance, before its status says so. */
  server: 'mooring.dev/server',
  /** On a Secret with a certificate or host keys: the TunnelEndpoint whose edges serve with it. */
  endpoint: 'mooring.dev/endpoint',
  /** On objects that Mooring made itself, such as the three group RoleBindings of a namespace. */
  managedBy: 'app.kubernetes.io/managed-by',
  /** On what a POST with an Idempotency-Key made under a name of the caller's choice: the hash of that key and its owner. */
  idempotencyKey: 'mooring.dev/idempotency-key',
} as const

export const annotations = {
  /** SHA-256 of the body of the POST that made the object: tells a repeated Idempotency-Key from a reused one. */
  requestHash: 'mooring.dev/request-hash',
  createdBy: 'mooring.dev/created-by',
  /** RFC 3339 UTC in milliseconds, where Kubernetes keeps whole seconds: what one second brought is told apart by it. */
  createdAt: 'mooring.dev/created-at',
  /** RFC 3339 UTC: when a request last changed the spec. */
  updatedAt: 'mooring.dev/updated-at',
  /** On a Tunnel: its hostname with a MAC over that and the tunnel's own name, so that one restored from a backup keeps it. */
  hostname: 'mooring.dev/hostname',
  /** On the Secret of a tunnel's certificate: RFC 3339 UTC, when it was signed. It begins to count before that, for clocks that are late. */
  obtainedAt: 'mooring.dev/obtained-at',
  /** On an ApiToken made with an Idempotency-Key: from it and the installation's secret its token can be derived again. */
  tokenSalt: 'mooring.dev/token-salt',
  /** RFC 3339 UTC. An instance that was never claimed is deleted past it: whoever asked for it has gone and cannot ask again. */
  claimDeadline: 'mooring.dev/claim-deadline',
  displayName: 'mooring.dev/display-name',
  /** On a credential Secret: which `spec.passwordVersion` its password belongs to. */
  passwordVersion: 'mooring.dev/password-version',
  /** `"true"` releases a resource whose database server cannot be reached; the sweeper gets the rest. */
  forceDelete: 'mooring.dev/force-delete',
  /** `"true"` on the Namespace mooring-shared: uninstalling may delete all databases. */
  deleteData: 'mooring.dev/delete-data',
  /** On a CustomResourceDefinition: version of the program that it came from. */
  version: 'mooring.dev/version',
} as const

/** A slug of an organization or namespace (surface, section 2). */
export const SLUG = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/
export const SLUG_MAX = 30
export const SLUG_RULE = 'must be lower-case letters, digits and single hyphens between them, a letter first'

export function isSlug(text: string): boolean {
  return text.length <= SLUG_MAX && SLUG.test(text)
}

/** `acme`, `prod` → `acme--prod`: slugs hold no double hyphen, so the pair can be read back. */
export function namespaceName(organization: string, namespace: string): string {
  return `${organization}--${namespace}`
}

/** `acme/prod` → its slugs; undefined for any other text. */
export function parseNamespacePath(text: string): { readonly organization: string; readonly namespace: string } | undefined {
  const [organization = '', namespace = '', ...rest] = text.split('/')
  return rest.length === 0 && isSlug(organization) && isSlug(namespace) ? { organization, namespace } : undefined
}

/** Prefix of the user names that Kubernetes keeps for itself. */
export const KUBERNETES_PREFIX = 'system:'
/** What an issuer's users and groups cannot begin with: Kubernetes' own names, and Mooring's. */
export const RESERVED_NAMES = ['mooring', 'system'] as const
/** Mooring's own issuer: its users are `local:…`. */
export const OWN_ISSUER = 'local'
/** What an issuer may be called. */
export const ISSUER_NAME = /^[a-z][a-z0-9-]{0,30}$/

/** Whether a user or group has a name that no issuer gives. */
export const isReserved = (name: string): boolean => RESERVED_NAMES.some((reserved) => name.startsWith(`${reserved}:`))

/** The three roles a member can have in a namespace, weakest first. */
export const ROLES = ['viewer', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** ClusterRole that a member's RoleBinding refers to. */
export const clusterRoleOf = (role: Role): string => `mooring-${role}`

/**
 * The two components' service accounts in mooring-system, and the ClusterRole that each is bound to in a tenant namespace by a RoleBinding
 * of the service account's name. Only in a cluster; nothing outside their own tenant namespaces is granted by these.
 */
export const SERVICE_ACCOUNTS = [
  { name: 'mooring-operator', clusterRole: 'mooring-tenant-operator' },
  { name: 'mooring-apiserver', clusterRole: 'mooring-tenant-apiserver' },
] as const

/** ClusterRole of whoever may see where databases and tunnels can be had; in the cluster home the chart binds it to whom its values name. */
export const CATALOG_ROLE = 'mooring-catalog-viewer'
export const PLATFORM_ADMIN_ROLE = 'mooring-platform-admin'
/** Group bound to {@link PLATFORM_ADMIN_ROLE}; only Mooring's own issuer can put a caller into it. */
export const PLATFORM_ADMIN_GROUP = 'mooring:platform-admins'

/**
 * The group that API tokens and role tokens of a namespace carry; bound in each tenant namespace to the role.
 * The prefix `mooring:` is reserved: an outside issuer's groups always start with that issuer's name.
 */
export const roleGroup = (namespace: string, role: Role): string => `mooring:${namespace}:${role}`
