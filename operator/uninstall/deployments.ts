import { z } from 'zod'
import { labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { pause, systemClock } from '../../shared/timers.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'
import { type UninstallDeps, listed } from './inventory.ts'
import { RoleBinding } from '../../crds/core.ts'
import type { Kind } from '../../crds/kind.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { formerHostKeysSecret, meshSecret, sharedCertificate, unknownHostsSecret } from '../../shared/edge-objects.ts'
import { Deployment, PodDisruptionBudget, Role, ServiceAccount, OWNERSHIP } from '../endpoint/kubernetes/kinds.ts'
import { NetworkPolicy, Pod, Service } from '../kubernetes/kinds.ts'

const RETRY_MS = 500
const List = z.object({ items: z.array(z.unknown()) })
const DEPLOYMENT = { kind: { kind: 'Deployment', plural: 'deployments', custom: false }, namespace: SYSTEM_NAMESPACE }

const Scale = z.object({ spec: z.object({ replicas: z.int().default(0) }).default({ replicas: 0 }) })

type Component = 'operator' | 'apiserver'
type Client = Pick<KubernetesClient, 'request'>

const pathOf = (component: Component): string =>
  `/apis/apps/v1/namespaces/${SYSTEM_NAMESPACE}/deployments/mooring-${component}/scale`

/** Desired number of a component's pods; undefined when its Deployment does not exist. @throws StoreError */
async function replicasOf(client: Client, component: Component): Promise<number | undefined> {
  const request = { method: 'GET', path: pathOf(component) } as const
  const scale = await client.request(request)
  if (scale.status === 404) return undefined
  if (scale.status >= 300) throw storeErrorOf(scale, { ...DEPLOYMENT, name: `mooring-${component}`, request })
  return Scale.parse(scale.body).spec.replicas
}

/** Sets the desired number of a component's pods. @throws StoreError */
export async function scaleDeployment(client: Client, component: Component, replicas: number): Promise<void> {
  const request = {
    method: 'PATCH',
    path: pathOf(component),
    contentType: 'application/merge-patch+json',
    body: { spec: { replicas } },
    idempotent: true,
  } as const
  const scaled = await client.request(request)
  if (scaled.status >= 300 && scaled.status !== 404)
    throw storeErrorOf(scaled, { ...DEPLOYMENT, name: `mooring-${component}`, request })
}

/**
 * Scales a component to zero and waits until its last pod is gone. A missing Deployment counts as stopped.
 * @returns its former number of pods @throws StoreError
 */
export async function stopDeployment(
  { store: { client }, clock = systemClock }: UninstallDeps,
  component: Component,
): Promise<number> {
  const before = await replicasOf(client, component)
  if (before === undefined) return 0
  await scaleDeployment(client, component, 0)
  const labelSelector = `app.kubernetes.io/name=mooring,app.kubernetes.io/component=${component}`
  const never = new AbortController().signal
  for (;;) {
    const pods = await client.request({
      method: 'GET',
      path: `/api/v1/namespaces/${SYSTEM_NAMESPACE}/pods`,
      query: { labelSelector },
    })
    if (pods.status === 200 && List.parse(pods.body).items.length === 0) return before
    await pause(clock, RETRY_MS, never)
  }
}

const KINDS: readonly Kind[] = [
  ...[Deployment, Pod, Service, PodDisruptionBudget, NetworkPolicy],
  ...[RoleBinding, Role, ServiceAccount],
]

/** Names of the Secrets of endpoints' edges. Kubernetes deletes them with their owner, but a Secret made by hand has none. */
export const edgeSecrets = (endpoints: readonly TunnelEndpoint[]): readonly string[] =>
  endpoints.flatMap(({ metadata: { name } }) =>
    [formerHostKeysSecret, meshSecret, sharedCertificate, unknownHostsSecret].map((nameOf) => nameOf(name)),
  )

const SECRETS = `/api/v1/namespaces/${SYSTEM_NAMESPACE}/secrets`
const SECRET = { kind: { kind: 'Secret', plural: 'secrets', custom: false }, namespace: SYSTEM_NAMESPACE }

/** Deletes the host keys of all domains, which outlive their endpoints. @throws StoreError */
export async function deleteHostKeys(client: Client): Promise<void> {
  const query = { labelSelector: labels.hostKeys }
  const request = { method: 'DELETE', path: SECRETS, query, idempotent: true } as const
  const deleted = await client.request(request)
  if (deleted.status >= 300 && deleted.status !== 404) throw storeErrorOf(deleted, { ...SECRET, request })
}

/**
 * Waits until Kubernetes' garbage collection has removed all objects of edges. Their TunnelEndpoints must be gone. The collection needs the
 * CustomResourceDefinition of the owners to exist.
 */
export async function edgesGone({ store, log, clock = systemClock }: UninstallDeps): Promise<void> {
  const scope = { namespace: SYSTEM_NAMESPACE, labels: OWNERSHIP }
  const never = new AbortController().signal
  for (;;) {
    const found = await Promise.all(KINDS.map(async (kind) => (await listed(store, kind, scope)).length))
    const left = found.reduce((sum, count) => sum + count, 0)
    if (left === 0) return
    log.info({ left }, 'waiting for edges to be gone')
    await pause(clock, RETRY_MS, never)
  }
}
