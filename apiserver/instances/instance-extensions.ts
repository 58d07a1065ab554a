import { allowedExtensions } from '../../crds/region.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { RouteRequest } from '../http/route.ts'
import { changeSpec } from '../resources/conditional-writes.ts'
import { addExtensions } from '../resources/extensions.ts'
import type { InstanceDeps } from './instance-deps.ts'

/** Returns the extensions that the region of an instance allows for its motor. */
export const allowedFor = ({ regions }: Pick<InstanceDeps, 'regions'>, { spec }: SharedInstance): readonly string[] =>
  allowedExtensions(regions.find(spec.region), spec.motor)

type Deps = Pick<InstanceDeps, 'store' | 'regions' | 'waits' | 'audit'>

export interface AddedExtensions {
  readonly instance: SharedInstance
  readonly names: readonly string[]
  /** Body field with the names, for errors. */
  readonly field: string
  readonly request: Pick<RouteRequest, 'principal' | 'requestId' | 'sourceIp' | 'arrivedAt'>
}

/** Adds extensions to an instance and returns the instance once they are installed. @throws as `addExtensions` of resources/extensions.ts */
export function addToInstance(deps: Deps, { instance, names, field, request }: AddedExtensions): Promise<SharedInstance> {
  const { store, audit, waits } = deps
  const { principal, requestId, sourceIp, arrivedAt } = request
  return addExtensions<SharedInstance>(
    {
      change: (found, specOf) => changeSpec(store, SharedInstance, { found, specOf }),
      record: (changed) => audit.record({ principal, requestId, sourceIp, action: 'update', ...changed }),
      until: (after, holds) => waits.changed(after, holds, arrivedAt),
    },
    { database: instance, allowed: allowedFor(deps, instance), names, field },
  )
}
