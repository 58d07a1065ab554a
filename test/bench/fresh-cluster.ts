import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { Namespace } from '../../crds/core.ts'
import { labels, namespaceName, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { createKubernetesStore, type KubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/credentials.ts'
import { prepareImages, startSecondCluster } from '../cluster/setup/cluster.ts'
import type { Kubernetes } from '../cluster/setup/commands.ts'
import { installRelease, REGION } from '../cluster/setup/release.ts'
import { isReady } from '../../store/conditions.ts'
import type { Store, Key } from '../../store/port.ts'
import { EDGE_PORTS } from '../../shared/edge-objects.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { timed } from './statistics.ts'

/** Cluster on this machine with nothing but the images, whatever `KUBECONFIG` names, for measures that cannot be undone. */
export interface FreshCluster extends AsyncDisposable {
  readonly clients: Kubernetes
  readonly store: KubernetesStore
  install(): Promise<void>
  /** Creates a tenant's namespace. @returns its name */
  namespace(): Promise<string>
  /** Creates a namespace with one instance, and waits until the instance is ready. */
  firstInstance(): Promise<SharedInstance>
}

export async function freshCluster(): Promise<FreshCluster> {
  await using started = new AsyncDisposableStack()
  const image = await prepareImages()
  const { clients } = started.use(await startSecondCluster(image))
  const store = started.use(createKubernetesStore({ config: await loadClusterConfig({ KUBECONFIG: clients.kubeconfig }) }))

  async function namespace(): Promise<string> {
    const organization = `bench${randomBytes(6).toString('hex')}`
    const name = namespaceName(organization, 'prod')
    const given = { [labels.organization]: organization, [labels.namespace]: 'prod' }
    await store.create(Namespace, { metadata: { name, labels: given } })
    return name
  }

  async function firstInstance(): Promise<SharedInstance> {
    const tenant = await namespace()
    await using watch = await watchReady(store, tenant)
    const key = { namespace: tenant, name: 'first' }
    const spec = { identifier: 'first', region: REGION.id, motor: 'postgresql-15.4.0' } as const
    await store.create(SharedInstance, { metadata: key, spec })
    await watch.ready('first')
    const found = await store.get(SharedInstance, key)
    if (!found) throw new Error('the instance is gone')
    return found
  }

  const ownership = started.move()
  return {
    ...{ clients, store, namespace, firstInstance },
    async install() {
      const [repository = '', tag = ''] = image.split(':')
      await installRelease(clients, { repository, tag })
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

const OPERATOR = ['deployment/mooring-operator', '--namespace', SYSTEM_NAMESPACE]
const PODS = ['--namespace', SYSTEM_NAMESPACE, '--selector', 'app.kubernetes.io/component=operator']

/** Scales the operator. Resolves when no pod is left, or when one is ready. */
export async function scaleOperator({ clients: { kubectl } }: Pick<FreshCluster, 'clients'>, replicas: 0 | 1): Promise<void> {
  await kubectl(['scale', ...OPERATOR, '--replicas', `${replicas}`])
  if (replicas === 0) await kubectl(['wait', 'pods', ...PODS, '--for=delete', '--timeout=60s'])
  else await kubectl(['rollout', 'status', ...OPERATOR, '--timeout=120s'])
}

/** Watch of a namespace's instances, as a client would use. */
export interface ReadyWatch extends AsyncDisposable {
  /** Resolves when the watch has reported the instance of this name as ready. */
  ready(name: string): Promise<void>
  /** Resolves when the watch has reported its deletion. */
  gone(name: string): Promise<void>
}

export async function watchReady(store: Store, namespace: string): Promise<ReadyWatch> {
  const stop = new AbortController()
  const { resourceVersion } = await store.list(SharedInstance, { namespace })
  const ready = new Map<string, PromiseWithResolvers<undefined>>()
  const gone = new Map<string, PromiseWithResolvers<undefined>>()

  const promised = (of: typeof ready, name: string): PromiseWithResolvers<undefined> => {
    const found = of.get(name) ?? Promise.withResolvers<undefined>()
    of.set(name, found)
    return found
  }

  async function follow(): Promise<void> {
    for await (const event of store.watch(SharedInstance, { namespace, resourceVersion, signal: stop.signal })) {
      if (event.type === 'bookmark') continue
      const { name } = event.object.metadata
      if (event.type === 'deleted') promised(gone, name).resolve(undefined)
      else if (isReady(event.object)) promised(ready, name).resolve(undefined)
    }
  }
  const following = follow()
  /** Rejects all waiting calls when the watch breaks. */
  const orBroken = async (awaited: Promise<undefined>): Promise<void> => {
    await Promise.race([awaited, following.then(() => Promise.reject(new Error('the watch ended')))])
  }

  return {
    ready: (name) => orBroken(promised(ready, name).promise),
    gone: (name) => orBroken(promised(gone, name).promise),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await following
    },
  }
}

/** Documentation address (RFC 5737): an allow list with it alone rejects all visitors. */
const NOBODY = ['192.0.2.1']

/** Sends a request over plain HTTP to an edge. @returns the status */
async function statusAt(address: string, host: string): Promise<number> {
  const asked = request({ host: address, port: EDGE_PORTS.http, headers: { Host: host }, agent: false }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.destroy()
  return answer.statusCode ?? 0
}

/**
 * Makes a tunnel reject and admit all visitors in turn. The tunnel redirects to HTTPS, so that no request waits for a client.
 * @returns the milliseconds from each change until the slowest edge applies it
 */
export async function timesToForce(
  { store, clients }: FreshCluster,
  tunnel: Key & { readonly host: string },
  rounds: number,
): Promise<readonly number[]> {
  const { host, ...key } = tunnel
  const addresses = '{.items[*].status.podIP}'
  const selector = ['--namespace', SYSTEM_NAMESPACE, '--selector', 'app.kubernetes.io/name=mooring-edge']
  const edges = (await clients.kubectl(['get', 'pods', ...selector, '--output', `jsonpath=${addresses}`])).split(' ')
  const apply = async (ingressIPWhitelist: readonly string[], status: number) => {
    await store.mergePatch(Tunnel, key, { spec: { config: { httpsOnly: true, ingressIPWhitelist } } })
    await Promise.all(
      edges.map(async (edge) => {
        while ((await statusAt(edge, host)) !== status) continue
      }),
    )
  }
  await apply([], 301)
  const times: number[] = []
  for (let round = 0; round < rounds; round++)
    times.push(await timed(() => (round % 2 === 0 ? apply(NOBODY, 403) : apply([], 301))))
  return times
}
