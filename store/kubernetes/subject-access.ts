import { z } from 'zod'
import { type Access, type Caller, groupOf, type Question, type BindingCaches, createMemberships } from '../access.ts'
import { type Clock, systemClock } from '../../shared/timers.ts'
import type { ApiRequest, KubernetesClient } from './client.ts'
import { storeErrorOf } from './status.ts'

export interface SubjectAccessDeps extends BindingCaches {
  /** Client whose user may `create subjectaccessreviews`. */
  readonly client: KubernetesClient
  readonly clock?: Clock
  /** Time for which a positive answer is cached, in milliseconds. Negative answers are not cached. Default 5,000. */
  readonly freshMs?: number
  /** Maximum number of cached answers; the oldest is dropped first. Default 10,000. */
  readonly limit?: number
}

const Review = z.object({ status: z.object({ allowed: z.boolean() }) })
const SUBJECT = { kind: { kind: 'SubjectAccessReview', plural: 'subjectaccessreviews', custom: false } }

/**
 * Creates {@link Access} for cluster mode. The API server's authorizers answer each question, so all bindings of the cluster count.
 * Memberships are read from the bindings to Mooring's ClusterRoles, as in embedded mode.
 * `may` throws StoreError `unavailable` when the API server does not respond: then no access is granted.
 */
export function createSubjectAccess(deps: SubjectAccessDeps): Access {
  const { client, clock = systemClock, freshMs = 5_000, limit = 10_000 } = deps
  /** Question → end of the validity of its positive answer; oldest answer first. */
  const allowed = new Map<string, number>()

  function remember(question: string, until: number): void {
    allowed.delete(question)
    allowed.set(question, until)
    const [oldest] = allowed.keys()
    if (allowed.size > limit && oldest !== undefined) allowed.delete(oldest)
  }

  async function ask(request: ApiRequest): Promise<boolean> {
    const answer = await client.request(request)
    const review = Review.safeParse(answer.body)
    if (answer.status >= 300 || !review.success) throw storeErrorOf(answer, { ...SUBJECT, request })
    return review.data.status.allowed
  }

  async function may(caller: Caller, question: Question): Promise<boolean> {
    const request = reviewOf(caller, question)
    const key = JSON.stringify(request.body)
    const now = clock.now()
    if (now < (allowed.get(key) ?? -Infinity)) return true
    const answer = await ask(request)
    // Counted from before the request: the answer may be based on state of that time.
    if (answer) remember(key, now + freshMs)
    else allowed.delete(key)
    return answer
  }

  return { may, memberships: createMemberships(deps) }
}

function reviewOf({ user, groups }: Caller, { verb, resource, namespace }: Question): ApiRequest {
  const [plural, subresource] = resource.split('/')
  const resourceAttributes = { verb, group: groupOf(resource), resource: plural, subresource, namespace }
  return {
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    // A review changes nothing.
    idempotent: true,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups: [...new Set(groups)].sort(), resourceAttributes },
    },
  }
}
