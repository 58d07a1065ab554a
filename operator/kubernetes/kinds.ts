import { z } from 'zod'
import type { Kind, Resource } from '../../crds/kind.ts'

type About<B extends z.ZodObject> = Pick<Kind<B>, 'group' | 'kind' | 'plural' | 'body'> & { readonly namespaced?: boolean }

/** Kind of Kubernetes itself, with the fields that Mooring reads; other fields of an object are kept. */
export function kubernetes<B extends z.ZodObject>({ namespaced = true, ...about }: About<B>): Kind<B> {
  const none = { shortNames: [], rules: [], columns: [], immutable: [], custom: false }
  const { kind } = about
  return { version: 'v1', singular: kind.toLowerCase(), description: `Kubernetes ${kind}.`, namespaced, ...none, ...about }
}

const Claim = z.object({
  spec: z.object({
    storageClassName: z.string().optional(),
    resources: z.object({ requests: z.object({ storage: z.string() }) }),
  }),
})

export const StatefulSet = kubernetes({
  group: 'apps',
  kind: 'StatefulSet',
  plural: 'statefulsets',
  body: z.object({
    spec: z.object({
      volumeClaimTemplates: z.array(Claim).default([]),
      template: z.object({
        spec: z.object({ containers: z.array(z.object({ name: z.string(), image: z.string().optional() })) }),
      }),
    }),
    status: z.object({ observedGeneration: z.int().optional(), updateRevision: z.string().optional() }).optional(),
  }),
})
export type StatefulSet = Resource<typeof StatefulSet>

export const Service = kubernetes({
  group: '',
  kind: 'Service',
  plural: 'services',
  body: z.object({
    spec: z.object({
      type: z.string().optional(),
      clusterIP: z.string().optional(),
      ports: z.array(z.object({ port: z.int(), nodePort: z.int().optional() })).default([]),
    }),
    status: z
      .object({
        loadBalancer: z
          .object({ ingress: z.array(z.object({ ip: z.string().optional(), hostname: z.string().optional() })).default([]) })
          .default({ ingress: [] }),
      })
      .optional(),
  }),
})
export type Service = Resource<typeof Service>

const ContainerState = z.object({
  waiting: z.object({ reason: z.string().optional(), message: z.string().optional() }).optional(),
  running: z.object({ startedAt: z.string().optional() }).optional(),
  terminated: z
    .object({
      exitCode: z.int(),
      reason: z.string().optional(),
      message: z.string().optional(),
      finishedAt: z.string().optional(),
    })
    .optional(),
})
const ContainerStatus = z.object({
  name: z.string(),
  ready: z.boolean(),
  restartCount: z.int().default(0),
  image: z.string().optional(),
  state: ContainerState.default({}),
  lastState: ContainerState.default({}),
})
export type ContainerStatus = z.output<typeof ContainerStatus>

export const Pod = kubernetes({
  group: '',
  kind: 'Pod',
  plural: 'pods',
  body: z.object({
    spec: z.object({ nodeName: z.string().optional() }),
    status: z
      .object({
        podIP: z.string().optional(),
        hostIP: z.string().optional(),
        startTime: z.string().optional(),
        conditions: z
          .array(
            z.object({ type: z.string(), status: z.string(), reason: z.string().optional(), message: z.string().optional() }),
          )
          .default([]),
        initContainerStatuses: z.array(ContainerStatus).default([]),
        containerStatuses: z.array(ContainerStatus).default([]),
      })
      .optional(),
  }),
})
export type Pod = Resource<typeof Pod>

export const ConfigMap = kubernetes({ group: '', kind: 'ConfigMap', plural: 'configmaps', body: z.object({}) })
export const PersistentVolumeClaim = kubernetes({
  group: '',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  body: z.object({
    spec: Claim.shape.spec,
    status: z.object({ capacity: z.object({ storage: z.string().optional() }).optional() }).optional(),
  }),
})
export type PersistentVolumeClaim = Resource<typeof PersistentVolumeClaim>
export const NetworkPolicy = kubernetes({
  group: 'networking.k8s.io',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  body: z.object({}),
})

export const Node = kubernetes({
  group: '',
  kind: 'Node',
  plural: 'nodes',
  namespaced: false,
  body: z.object({
    spec: z.object({ podCIDRs: z.array(z.string()).default([]) }),
    status: z.object({ addresses: z.array(z.object({ type: z.string(), address: z.string() })).default([]) }).optional(),
  }),
})
export type Node = Resource<typeof Node>

/** JSON form of a class of the client library, with the same field names and types. */
export type Plain<T> = T extends Date
  ? string
  : T extends (infer E)[]
    ? Plain<E>[]
    : T extends object
      ? { [P in keyof T]: Plain<T[P]> }
      : T
