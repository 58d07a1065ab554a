import type { Draft } from '../../crds/kind.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import { allowedExtensions } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { createdNow } from '../resources/created-at.ts'
import { wrongField } from '../http/errors.ts'
import { requireAllowed } from './instance-extensions.ts'
import type { CreateInstanceBody } from './instance-body.ts'
import type { Regions } from '../catalog/regions.ts'

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
  if (template.spec.motor !== motor || template.spec.region !== region) {
    throw wrongField('template', 'must be a database of the same region and motor')
  }
  return template
}
