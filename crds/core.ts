import { z } from 'zod'
import type { Kind, Resource } from './kind.ts'

interface CoreKind<B extends z.ZodObject> {
  readonly group: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  readonly body: B
  readonly immutable?: readonly string[]
}

/** Declares one of Kubernetes' own kinds that Mooring reads or writes. Both stores serve it under the same name. */
function core<B extends z.ZodObject>({ immutable = [], ...def }: CoreKind<B>): Kind<B> {
  const description = `Kubernetes ${def.kind}.`
  return {
    version: 'v1',
    singular: def.kind.toLowerCase(),
    shortNames: [],
    custom: false,
    description,
    rules: [],
    columns: [],
    immutable,
    ...def,
  }
}

export const Namespace = core({
  group: '',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
  body: z.object({ status: z.object({ phase: z.string().optional() }).optional() }),
})
export type Namespace = Resource<typeof Namespace>

/** Kubernetes Secret; values of `data` are base64. */
export const Secret = core({
  group: '',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
  body: z.object({ type: z.string().default('Opaque'), data: z.record(z.string(), z.base64()).default({}) }),
  immutable: ['type'],
})
export type Secret = Resource<typeof Secret>

/** Kubernetes ConfigMap. */
export const ConfigMap = core({
  group: '',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
  body: z.object({ data: z.record(z.string(), z.string()).default({}) }),
})
export type ConfigMap = Resource<typeof ConfigMap>

const RBAC = 'rbac.authorization.k8s.io'
const binding = z.object({
  roleRef: z.object({ apiGroup: z.string(), kind: z.string(), name: z.string() }),
  subjects: z
    .array(
      z.object({
        kind: z.enum(['User', 'Group', 'ServiceAccount']),
        apiGroup: z.string().optional(),
        name: z.string(),
        namespace: z.string().optional(),
      }),
    )
    .default([]),
})

export const RoleBinding = core({
  group: RBAC,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
  body: binding,
  immutable: ['roleRef'],
})
export type RoleBinding = Resource<typeof RoleBinding>

export const ClusterRoleBinding = core({
  group: RBAC,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
  body: binding,
  immutable: ['roleRef'],
})
export type ClusterRoleBinding = Resource<typeof ClusterRoleBinding>

/** Kubernetes Lease. Times are of type MicroTime: `2030-01-31T12:00:00.000000Z`. A Lease without a holder is free. */
export const Lease = core({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
  body: z.object({
    spec: z
      .object({
        holderIdentity: z.string().optional(),
        leaseDurationSeconds: z.int().positive().optional(),
        acquireTime: z.string().optional(),
        renewTime: z.string().optional(),
        leaseTransitions: z.int().nonnegative().optional(),
      })
      .default({}),
  }),
})
export type Lease = Resource<typeof Lease>

/** Addresses and ports of the pods of a Service (discovery.k8s.io/v1); only the fields that edges read. */
export const EndpointSlice = core({
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
  body: z.object({
    addressType: z.enum(['IPv4', 'IPv6', 'FQDN']),
    endpoints: z
      .array(z.object({ addresses: z.array(z.string()), targetRef: z.object({ name: z.string().optional() }).optional() }))
      .nullish(),
    ports: z.array(z.object({ name: z.string().nullish(), port: z.int().nullish() })).nullish(),
  }),
  immutable: ['addressType'],
})
export type EndpointSlice = Resource<typeof EndpointSlice>
