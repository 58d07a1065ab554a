import { z } from 'zod'
import type { Resource } from '../../../crds/kind.ts'
import { kubernetes } from '../../kubernetes/kinds.ts'

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
