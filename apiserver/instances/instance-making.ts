import type { Draft } from '../../crds/kind.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { AuditedRequest } from '../journal/audit.ts'
import { ApiError } from '../http/errors.ts'
import { type CreateInstanceBody, expiryOf, requireAhead } from './instance-body.ts'
import type { InstanceDeps } from './instance-deps.ts'
import { newInstance } from './new-instance.ts'
import type { Principal } from '../http/route.ts'

/** Namespace and name of the object of a request. */
export interface ObjectKey {
  readonly namespace: string
  readonly name: string
}

/** The caller and its request, for the audit log. */
export type Asker = Pick<AuditedRequest, 'principal' | 'requestId' | 'sourceIp'>

export interface Wanted {
  readonly principal: Principal
  readonly body: CreateInstanceBody
  /** Whether the same request can be sent again and finds what this one made. */
  readonly repeatable: boolean
}

/** What the requests that make instances have in common. */
export interface InstanceMaking {
  /** @throws ApiError of what is wrong with the body, or prevents its database */
  draftOf(wanted: Wanted, key: ObjectKey): Promise<Draft<typeof SharedInstance>>
  /** Takes back what cannot become a database. Never throws. */
  discard(before: SharedInstance, by: Asker): Promise<void>
}

export function createInstanceMaking(deps: InstanceDeps): InstanceMaking {
  const { store, instances, catchUp, limits, audit } = deps
  return {
    async draftOf({ principal, body, repeatable: keyed }, key) {
      const now = deps.now()
      const expiresAt = expiryOf(body, now)
      if (expiresAt !== undefined) requireAhead(expiresAt, now)
      const { template } = body
      if (template !== undefined) await catchUp(instances, () => instances.byUid(template.toLowerCase()))
      return newInstance(deps, body, { ...key, createdBy: principal.user, keyed, now, changeMs: limits.changeMs, expiresAt })
    },
    async discard(before, by) {
      const { metadata } = before
      try {
        await store.delete(SharedInstance, metadata, { uid: metadata.uid })
        await audit.record({ ...by, action: 'delete', before })
      } catch {
        // Gone already, or the store is away: then the claim deadline ends it, and the answer is the first error all the same.
      }
    },
  }
}

/** Whether waiting longer would not have helped. */
export function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.code !== 'unavailable'
}
