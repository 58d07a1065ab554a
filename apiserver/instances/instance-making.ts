import type { ObjectKey } from '../resources/quota.ts'
import type { Draft } from '../../crds/kind.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { AuditedRequest } from '../journal/audit.ts'
import { ApiError } from '../http/errors.ts'
import { type CreateInstanceBody, expiryOf, requireAhead } from './instance-body.ts'
import type { InstanceDeps } from './instance-deps.ts'
import { newInstance } from './new-instance.ts'
import type { Principal } from '../http/route.ts'

/** Caller and request, for the audit log. */
export type AuditCaller = Pick<AuditedRequest, 'principal' | 'requestId' | 'sourceIp'>

export interface CreationRequest {
  readonly principal: Principal
  readonly body: CreateInstanceBody
  /** Whether a repeated request finds the instance of this one. */
  readonly repeatable: boolean
}

/** Steps that all routes that create instances share. */
export interface InstanceCreation {
  /** Returns the resource for a request. @throws ApiError when the body is invalid or its database cannot be created */
  draftOf(request: CreationRequest, key: ObjectKey): Promise<Draft<typeof SharedInstance>>
  /** Deletes an instance that cannot get a database. Never throws. */
  discard(before: SharedInstance, by: AuditCaller): Promise<void>
}

export function createInstanceCreation(deps: InstanceDeps): InstanceCreation {
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
        // The instance is gone already, or the store is unavailable and the claim deadline ends it. The answer is the first error in both cases.
      }
    },
  }
}

/** Whether an error is permanent, so that waiting longer would not help. */
export function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.code !== 'unavailable'
}
