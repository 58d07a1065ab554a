import { createInstanceDeps, type InstanceWiring } from '../instance-deps.ts'
import type { AnyRoute } from '../../http/route.ts'
import { createExtension, listExtensions } from './extensions.ts'
import { createInstance } from './create-instance.ts'
import { deleteInstance, deleteInstanceByIdentifier } from './delete-instance.ts'
import { ensureInstance } from './ensure-instance.ts'
import { getInstance, listInstances } from './read-instances.ts'
import { patchInstance } from './patch-instance.ts'
import { resetInstance, rotatePassword } from './instance-actions.ts'

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
