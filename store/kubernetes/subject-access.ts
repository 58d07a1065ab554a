import { z } from 'zod'
import type { Access, Caller, Question } from '../access.ts'
import { type Clock, systemClock } from '../clock.ts'
import { type BindingCaches, createMemberships } from '../memberships.ts'
import { groupOf } from '../resource-group.ts'
import type { ApiRequest, KubernetesClient } from './client.ts'
import { storeErrorOf } from './status.ts'

export interface SubjectAccessDeps extends BindingCaches {
  /** Its user needs `create subjectaccessreviews`. */
  readonly client: KubernetesClient
  readonly clock?: Clock
  /** How long a yes is good for; a no is asked again each time. Default 5,000. */
  readonly freshMs?: number
  /** Answers kept; the oldest go first. Default 10,000. */
  readonly limit?: number
}

const Review = z.object({ status: z.object({ allowed: z.boolean() }) })
const SUBJECT = { kind: { kind: 'SubjectAccessReview', plural: 'subjectaccessreviews', custom: false } }

/**
 * {@link Access} for the cluster: the API server's own authorizers answer each question, so whatever an administrator of the cluster
 * binds counts. Memberships are read from the bindings to Mooring's ClusterRoles, as in the embedded home.
 * `may` throws StoreError `unavailable` when the API server does not answer: nobody may anything then.
 */
export function createSubjectAccess(deps: SubjectAccessDeps): Access {
  const { client, clock = systemClock, freshMs = 5_000, limit = 10_000 } = deps
  /** Question → until when its yes counts; in the order in which they were given. */
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
    if (answer.status >= 300 || !review.success) throw storeErrorOf(answer, SUBJECT)
    return review.data.status.allowed
  }

  async function may(caller: Caller, question: Question): Promise<boolean> {
    const request = reviewOf(caller, question)
    const key = JSON.stringify(request.body)
    const now = clock.now()
    if (now < (allowed.get(key) ?? -Infinity)) return true
    const answer = await ask(request)
    // Counted from before the question: what it was answered from may be as old as that.
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
    // It changes nothing.
    idempotent: true,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups: [...new Set(groups)].sort(), resourceAttributes },
    },
  }
}
