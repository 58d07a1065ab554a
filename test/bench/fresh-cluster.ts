import { randomBytes } from 'node:crypto'
import { Namespace } from '../../crds/core.ts'
import { labels, namespaceName, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { createKubernetesStore, type KubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/cluster-config.ts'
import { prepareImages } from '../cluster/setup/cluster.ts'
import type { Kubernetes } from '../cluster/setup/kubectl.ts'
import { installRelease, REGION } from '../cluster/setup/release.ts'
import { startSecondCluster } from '../cluster/setup/second-cluster.ts'
import { watchReady } from './ready-watch.ts'

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
