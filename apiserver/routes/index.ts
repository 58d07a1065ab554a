import type { AnyRoute } from '../route.ts'
import type { InstanceWiring } from '../instance-deps.ts'
import type { TenancyWiring } from '../tenancy-deps.ts'
import { catalogRoutes, type CatalogWiring, instanceRoutes } from './instances.ts'
import { tenancyRoutes } from './tenancy.ts'

export type RoutesWiring = InstanceWiring & CatalogWiring & TenancyWiring

/** Every route of the API, of both listeners. */
export function allRoutes(wiring: RoutesWiring): AnyRoute[] {
  return [...catalogRoutes(wiring), ...instanceRoutes(wiring), ...tenancyRoutes(wiring)]
}
