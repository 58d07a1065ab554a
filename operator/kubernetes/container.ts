import type { V1Container, V1SecurityContext } from '@kubernetes/client-node'
import type { PodResources } from './chart-setting.ts'
import type { Plain } from './kinds.ts'

/** Security context of each container that the operator runs. */
export const CONFINED: Plain<V1SecurityContext> = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
}

/** Returns the resources of a container. Quantities may be numbers in a chart's values. */
export function resourcesOf({ requests, limits }: PodResources): NonNullable<Plain<V1Container>['resources']> {
  const texts = (quantities: Readonly<Record<string, string | number>>) =>
    Object.fromEntries(Object.entries(quantities).map(([name, value]) => [name, String(value)]))
  return { ...(requests && { requests: texts(requests) }), ...(limits && { limits: texts(limits) }) }
}
