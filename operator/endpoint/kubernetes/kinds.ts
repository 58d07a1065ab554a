import { z } from 'zod'
import type { Resource, OwnerReference } from '../../../crds/kind.ts'
import { kubernetes } from '../../kubernetes/kinds.ts'
import { labels, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { ownersOf } from '../runtime.ts'

export const Deployment = kubernetes({
  group: 'apps',
  kind: 'Deployment',
  plural: 'deployments',
  body: z.object({
    spec: z.object({ replicas: z.int().default(1) }),
    status: z
      .object({
        readyReplicas: z.int().default(0),
        conditions: z.array(z.object({ type: z.string(), status: z.string(), message: z.string().optional() })).default([]),
      })
      .optional(),
  }),
})
export type Deployment = Resource<typeof Deployment>

export const PodDisruptionBudget = kubernetes({
  group: 'policy',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  body: z.object({}),
})

export const ServiceAccount = kubernetes({ group: '', kind: 'ServiceAccount', plural: 'serviceaccounts', body: z.object({}) })

export const Role = kubernetes({
  group: 'rbac.authorization.k8s.io',
  kind: 'Role',
  plural: 'roles',
  body: z.object({ rules: z.array(z.object({ resourceNames: z.array(z.string()).optional() })).nullish() }),
})

/** Labels of all objects of edges; the selector of the watches. */
export const OWNERSHIP = { 'app.kubernetes.io/name': 'mooring-edge', [labels.managedBy]: 'mooring' } as const

/** ClusterRole that lets edges read what they serve, and its binding. The chart makes both. */
export const EDGE_CLUSTER_ROLE = 'mooring-edge'

export const keyIn = (name: string) => ({ namespace: SYSTEM_NAMESPACE, name })

/** Selector of an endpoint's pods and of all its other objects. */
export const selectorOf = (endpoint: string): Record<string, string> => ({ ...OWNERSHIP, [labels.endpoint]: endpoint })

export interface EdgeMetadata {
  readonly name: string
  readonly namespace: string
  readonly labels: Record<string, string>
  readonly ownerReferences: OwnerReference[]
}

export function metadataOf(endpoint: Pick<TunnelEndpoint, 'metadata'>, name: string): EdgeMetadata {
  return { ...keyIn(name), labels: selectorOf(endpoint.metadata.name), ownerReferences: ownersOf(endpoint) }
}
