import { allowedExtensions } from '../../crds/region.ts'
import { ExtensionReason, EXTENSIONS_INSTALLED, SharedInstance } from '../../crds/shared-instance.ts'
import { ApiError } from '../http/errors.ts'
import { conditionOf } from '../../store/conditions.ts'
import { type ChangedSpec, changeSpec } from '../resources/conditional-writes.ts'
import type { InstanceDeps } from './instance-deps.ts'
import { retryLater } from './instance-waits.ts'
import type { RouteRequest } from '../http/route.ts'

/** Returns the extensions that the region of an instance allows for its motor. */
export const allowedFor = ({ regions }: Pick<InstanceDeps, 'regions'>, { spec }: SharedInstance): readonly string[] =>
  allowedExtensions(regions.find(spec.region), spec.motor)

/** Checks that the region allows the extensions. @throws ApiError `unsupported_extension` with the allowed ones */
export function requireAllowed(allowed: readonly string[], names: readonly string[], field: string): void {
  const unsupported = names.find((name) => !allowed.includes(name))
  if (unsupported === undefined) return
  const rule = allowed.length === 0 ? 'this motor has no extensions' : `must be one of ${allowed.join(', ')}`
  throw new ApiError('unsupported_extension', `unsupported extension: ${unsupported}: ${rule}`, {
    details: [{ field, message: rule }],
  })
}

type Deps = Pick<InstanceDeps, 'store' | 'regions' | 'waits' | 'audit'>

export interface AddedExtensions {
  readonly instance: SharedInstance
  readonly names: readonly string[]
  /** Body field with the names, for errors. */
  readonly field: string
  readonly request: Pick<RouteRequest, 'principal' | 'requestId' | 'sourceIp' | 'arrivedAt'>
}

/**
 * Adds extensions to an instance and returns the instance once they are installed. The operator looks at the database for each call: the tenant
 * may have dropped an extension since the status was written.
 * @throws ApiError `unsupported_extension`; `conflict`; `not_found`; `unavailable` when the time budget of the request is used up; StoreError
 */
export async function addExtensions(deps: Deps, { instance, names, field, request }: AddedExtensions): Promise<SharedInstance> {
  const { store, audit, waits } = deps
  const { principal, requestId, sourceIp, arrivedAt } = request
  requireAllowed(allowedFor(deps, instance), names, field)
  const changed = await changeSpec(store, SharedInstance, {
    found: instance,
    specOf: ({ spec }) => ({
      extensions: [...new Set([...spec.extensions, ...names])],
      extensionsVersion: (spec.extensionsVersion ?? 0) + 1,
    }),
  })
  const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', ...changed })
  const version = changed.after.spec.extensionsVersion ?? 0
  try {
    const done = await waits.changed(changed.after, (now) => areInstalled(now, { names, field, version }), arrivedAt)
    if (!done) throw retryLater('the extensions are not installed yet; try again')
    return done
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'unavailable') await rollBack(store, changed)
    throw error
  } finally {
    await recorded
  }
}

interface Awaited {
  readonly names: readonly string[]
  readonly field: string
  /** `spec.extensionsVersion` of the request. */
  readonly version: number
}

/**
 * Whether the extensions are installed; false until the operator has looked at the database.
 * @throws ApiError `conflict` or `unsupported_extension` when the operator rejected one
 */
function areInstalled({ status }: SharedInstance, { names, field, version }: Awaited): boolean {
  if ((status?.extensionsVersion ?? 0) < version) return false
  if (names.every((name) => status?.extensions?.includes(name))) return true
  const condition = conditionOf({ status }, EXTENSIONS_INSTALLED)
  if (condition === undefined) return false
  const code = condition.reason === ExtensionReason.Conflict ? 'conflict' : 'unsupported_extension'
  throw new ApiError(code, condition.message, { details: [{ field, message: condition.message }] })
}

/** Removes the extensions of a rejected request from the spec, so that the operator stops trying. */
async function rollBack(store: InstanceDeps['store'], { before, after }: ChangedSpec<typeof SharedInstance>): Promise<void> {
  const kept = new Set(before.spec.extensions)
  const added = new Set(after.spec.extensions.filter((name) => !kept.has(name)))
  await changeSpec(store, SharedInstance, {
    found: after,
    specOf: ({ spec }) => ({ extensions: spec.extensions.filter((name) => !added.has(name)) }),
  })
}
