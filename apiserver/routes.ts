import type { AnyRoute } from './http/route.ts'
import type { InstanceWiring } from './instances/instance-deps.ts'
import type { TenancyWiring } from './tenancy/tenancy-deps.ts'
import { catalogRoutes, type CatalogWiring } from './catalog/catalog-routes.ts'
import { instanceRoutes } from './instances/routes/instances.ts'
import { tenancyRoutes } from './tenancy/routes/tenancy.ts'
import { tunnelRoutes, type TunnelRoutesWiring } from './tunnels/routes/tunnels.ts'

/** Dependencies of all routes; `tunnels` is absent in an installation without edges. */
export type RoutesWiring = InstanceWiring & CatalogWiring & TenancyWiring & { readonly tunnels?: TunnelRoutesWiring | undefined }

/** Returns every route of the API, of both listeners. */
export function allRoutes(wiring: RoutesWiring): AnyRoute[] {
  const { tunnels } = wiring
  return [
    ...catalogRoutes(wiring),
    ...instanceRoutes(wiring),
    ...tenancyRoutes(wiring),
    ...(tunnels ? tunnelRoutes(tunnels) : []),
  ]
}
