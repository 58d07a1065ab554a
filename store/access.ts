import { KINDS } from '../crds/index.ts'
import { GROUP, type Role } from '../crds/names.ts'

/** Authenticated caller. User and group names have the prefix of their issuer (`local:alice`), except Mooring's own groups (`mooring:…`). */
export interface Caller {
  readonly user: string
  readonly groups: readonly string[]
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** Access to check, in Kubernetes' terms. `namespace` is absent for cluster-scoped resources. */
export interface Question {
  readonly verb: Verb
  /** Plural of the kind, e.g. `sharedinstances`, `secrets`. */
  readonly resource: string
  readonly namespace?: string | undefined
}

/** Role of a caller in a namespace of an organization. */
export interface Membership {
  readonly organization: string
  readonly namespace: string
  readonly role: Role
}

/** Authorization. Cluster mode asks Kubernetes RBAC (SubjectAccessReview); embedded mode evaluates the same roles and bindings itself. */
export interface Access {
  /** Returns whether the caller has this access. */
  may(caller: Caller, question: Question): Promise<boolean>
  /** Returns the namespaces in which the caller has a role, with the strongest role, ordered by organization, then namespace. */
  memberships(caller: Caller): Promise<readonly Membership[]>
}

const GROUPS: ReadonlyMap<string, string> = new Map(KINDS.map(({ plural, group }) => [plural, group]))

/** Returns the API group of a resource: `secrets`, `sharedinstances/status`. */
export function groupOf(resource: string): string {
  const [plural = ''] = resource.split('/')
  // An unknown resource is a planned kind of Mooring (crds/roles.ts).
  return GROUPS.get(plural) ?? GROUP
}
