import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { Node, Pod, Service } from '../../../operator/kubernetes/kinds.ts'
import { postgresqlPod } from '../../../operator/server/kubernetes/postgresql.ts'
import { POD_SETTINGS, type DesiredServer } from '../../../operator/server/kubernetes/desired-server.ts'
import { type TunnelEndpoint, TunnelEndpointSpec } from '../../../crds/tunnel-endpoint.ts'
import { type EdgePodSettings, EdgePods } from '../../../operator/endpoint/kubernetes/settings.ts'

const metadata = { uid: 'uid', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }

/** Shared server with the defaults. */
export const server: DatabaseServer = {
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'DatabaseServer',
  metadata: { ...metadata, namespace: 'mooring-shared', name: 'pg-1', uid: 'uid-of-pg-1' },
  spec: { motor: 'postgresql-15.4.0', region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01', tenancy: 'shared', capacity: 50 },
}

/** Returns the desired state of a shared server behind a ClusterIP, apart from the given fields. */
export const desired = (traits: Partial<DesiredServer> = {}): DesiredServer => ({
  ...{ server, engine: postgresqlPod, image: 'postgres:15.4', size: POD_SETTINGS.sharedSize, settings: POD_SETTINGS },
  ...{ exposure: 'ClusterIP', host: undefined, nodeSelector: {}, outputAt: '/usr/share/postgresql/15/extension', tls: true },
  access: undefined,
  admin: { user: 'mooring', secret: 'pg-1-admin' },
  ...traits,
})

/** Returns the Service of the server, with a load balancer's addresses. */
export const service = (spec: Partial<Service['spec']> = {}, ingress: { ip?: string; hostname?: string }[] = []): Service => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { ...metadata, name: 'pg-1' } },
  spec: { clusterIP: '10.96.0.7', ports: [{ port: 5432, nodePort: 31_234 }], ...spec },
  status: { loadBalancer: { ingress } },
})

type PodStatus = NonNullable<Pod['status']>

/** Returns the pod of the server. */
export const pod = (status: Partial<PodStatus> = {}, traits: { deletionTimestamp?: string; nodeName?: string } = {}): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: {
    ...{ ...metadata, name: 'pg-1-0' },
    ...(traits.deletionTimestamp !== undefined && { deletionTimestamp: traits.deletionTimestamp }),
  },
  spec: traits.nodeName === undefined ? {} : { nodeName: traits.nodeName },
  status: { conditions: [], initContainerStatuses: [], containerStatuses: [], ...status },
})

interface NodeTraits {
  readonly labels?: Record<string, string>
  readonly addresses?: { type: string; address: string }[]
  readonly podCIDRs?: string[]
}

/** Returns a node of the cluster. */
export const node = (name: string, { labels = {}, addresses = [], podCIDRs = [] }: NodeTraits = {}): Node => ({
  ...{ apiVersion: 'v1', kind: 'Node', metadata: { ...metadata, name, labels } },
  spec: { podCIDRs },
  status: { addresses },
})

/** Returns an endpoint with the defaults, apart from the given fields. */
export const endpoint = (spec: object = {}): TunnelEndpoint => ({
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'TunnelEndpoint',
  metadata: { name: 'eu', uid: 'uid-of-eu', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: TunnelEndpointSpec.parse({
    region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01',
    domain: 't.test',
    sshHost: 'ssh.test',
    ...spec,
  }),
})

/** Returns the settings of edge pods in the form of the chart. */
export const settings = (given: object = {}): EdgePodSettings => EdgePods.parse(JSON.stringify({ image: 'mooring:1', ...given }))
