import type { Role } from '../crds/names.ts'

/** Who calls. Names carry their issuer: `local:alice`; groups too, but for Mooring's own (`mooring:…`). */
export interface Caller {
  readonly user: string
  readonly groups: readonly string[]
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** One question, in Kubernetes' own terms. `namespace` is absent for cluster-scoped resources. */
export interface Question {
  readonly verb: Verb
  /** Plural of the kind, e.g. `sharedinstances`, `secrets`. */
  readonly resource: string
  readonly namespace?: string | undefined
}

export interface Membership {
  readonly organization: string
  readonly namespace: string
  readonly role: Role
}

/** Who may: Kubernetes RBAC in a cluster (SubjectAccessReview), the same roles and bindings read from the store in embedded mode. */
export interface Access {
  may(caller: Caller, question: Question): Promise<boolean>
  /** The namespaces in which the caller has a role, by organization, then namespace; the strongest role counts. */
  memberships(caller: Caller): Promise<readonly Membership[]>
}
