import type { ObjectKey } from '../resources/creations.ts'
import type { Draft } from '../../crds/kind.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { AuditedRequest } from '../journal/audit.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import { type CreateInstanceBody, expiryOf, requireAhead } from './instance-body.ts'
import type { InstanceDeps } from './instance-deps.ts'
import type { Principal } from '../http/route.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import { allowedExtensions } from '../../crds/region.ts'
import type { Cache } from '../../store/cache.ts'
import { createdNow } from '../resources/names-and-times.ts'
import { requireAllowed } from '../resources/extensions.ts'
import type { Regions } from '../catalog/regions.ts'

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

/** Time in milliseconds between the end of a request without an Idempotency-Key and the deadline of its claim. */
const GRACE_MS = 5_000

export interface NewInstance {
  readonly namespace: string
  readonly name: string
  readonly createdBy: string
  /** Whether a repeated request finds the instance. If not, the claim gets a deadline. */
  readonly keyed: boolean
  readonly now: Date
  readonly changeMs: number
  readonly expiresAt: string | undefined
}

export interface NewInstanceDeps {
  readonly regions: Regions
  readonly instances: Cache<typeof SharedInstance>
}

/**
 * Returns the SharedInstance for a body.
 * @throws ApiError `unknown_region`, `unsupported_motor`, `unsupported_extension`, `invalid_request` naming `template`
 */
export function newInstance(deps: NewInstanceDeps, body: CreateInstanceBody, about: NewInstance): Draft<typeof SharedInstance> {
  const { region, motor } = deps.regions.choose(body)
  const spec = { identifier: body.identifier, region: region.spec.id, motor }
  requireAllowed(allowedExtensions(region, motor), body.extensions ?? [], 'extensions')
  const template =
    body.template === undefined ? undefined : templateOf(deps.instances.byUid(body.template.toLowerCase()), about, spec)
  return {
    metadata: {
      namespace: about.namespace,
      name: about.name,
      finalizers: [FINALIZER],
      annotations: {
        [annotations.createdBy]: about.createdBy,
        ...createdNow(about.now),
        ...(about.keyed ? {} : claimDeadline(about)),
      },
    },
    spec: {
      ...spec,
      ...(body.extensions && { extensions: [...new Set(body.extensions)] }),
      ...(about.expiresAt !== undefined && { expiresAt: about.expiresAt }),
      ...(template && { templateRef: { name: template.metadata.name } }),
    },
  }
}

/** Returns the annotation with the claim deadline. The request deletes an instance it gives up; the deadline covers a crash of the process. */
function claimDeadline({ now, changeMs }: NewInstance): Record<string, string> {
  return { [annotations.claimDeadline]: new Date(now.getTime() + changeMs + GRACE_MS).toISOString() }
}

function templateOf(
  template: SharedInstance | undefined,
  { namespace }: NewInstance,
  { region, motor }: { readonly region: string; readonly motor: string },
): SharedInstance {
  if (template?.metadata.namespace !== namespace || template.metadata.deletionTimestamp !== undefined) {
    throw wrongField('template', 'must be the id of a database of this namespace')
  }
  if (template.spec.region !== region) throw wrongField('template', 'must be a database of the same region')
  if (template.spec.motor !== motor) {
    const message = `the template is a database of ${template.spec.motor}: a copy must have the same motor, not ${motor}`
    throw new ApiError('unsupported_motor', message, { details: [{ field: 'template', message }] })
  }
  return template
}
