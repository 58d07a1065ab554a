import type { Plan } from '../../../crds/plan.ts'
import type { Cache } from '../../../store/cache.ts'
import { createInstanceDeps, type InstanceWiring } from '../instance-deps.ts'
import { createRegions, type RegionsDeps } from '../../catalog/regions.ts'
import type { AnyRoute } from '../../http/route.ts'
import { createExtension } from './create-extension.ts'
import { createInstance } from './create-instance.ts'
import { createMetadata } from '../../catalog/create-metadata.ts'
import { deleteInstance } from './delete-instance.ts'
import { deleteInstanceByIdentifier } from './delete-instance-by-identifier.ts'
import { ensureInstance } from './ensure-instance.ts'
import { getInstance } from './get-instance.ts'
import { listEngines } from '../../catalog/list-engines.ts'
import { listExtensions } from './list-extensions.ts'
import { listInstances } from './list-instances.ts'
import { listRegions } from '../../catalog/list-regions.ts'
import { patchInstance } from './patch-instance.ts'
import { resetInstance } from './reset-instance.ts'
import { rotatePassword } from './rotate-password.ts'

/** Returns the routes of shared databases (docs/api.md, "Instances"). */
export function instanceRoutes(wiring: InstanceWiring): AnyRoute[] {
  const deps = createInstanceDeps(wiring)
  const routes = [
    ...[createInstance, listInstances, ensureInstance, deleteInstanceByIdentifier],
    ...[getInstance, patchInstance, rotatePassword, resetInstance, deleteInstance],
    ...[createExtension, listExtensions],
  ]
  return routes.map((make) => make(deps))
}

export interface CatalogWiring extends RegionsDeps {
  readonly plans: Cache<typeof Plan>
}

/** Returns the routes of regions, engines and plans (docs/api.md, "Regions, engines and plans"). */
export function catalogRoutes(wiring: CatalogWiring): AnyRoute[] {
  const regions = createRegions(wiring)
  return [listRegions({ regions }), listEngines({ regions }), createMetadata({ regions, plans: wiring.plans })]
}
