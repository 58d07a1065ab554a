import { randomBytes } from 'node:crypto'
import { installationIn } from '../support/deployment/cluster.ts'
import type { Answer, Body, Call } from '../support/api/answers.ts'
import { type AuditLog, openAuditLog } from '../support/api/audit-log.ts'
import { createHttpsClient } from '../support/api/https-client.ts'
import type { Installation } from '../support/deployment/installation.ts'
import { createTenant, type Tenant, createTokens } from '../support/api/tenant.ts'
import { namespaceName } from '../../crds/names.ts'
import { createKubernetesStore, type KubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/credentials.ts'
import { startCluster } from '../cluster/setup/cluster.ts'
import type { Kubernetes } from '../cluster/setup/commands.ts'
import { metric } from './metrics.ts'

/** Mooring in a cluster, with a tenant for one measure. */
export interface BenchCluster extends AsyncDisposable {
  readonly clients: Kubernetes
  readonly installation: Installation
  readonly tenant: Tenant
  /** Name of the tenant's Namespace. */
  readonly namespace: string
  /** Clients with the rights of the kubeconfig. */
  readonly store: KubernetesStore
  /** Audit log; undefined when the cluster does not offer it. */
  readonly auditLog: AuditLog | undefined
  /** Returns the sum of a metric over all pods of Mooring. */
  metric(name: string): Promise<number>
}

/** Opens the cluster that `KUBECONFIG` names, with its release or a new one; without it a cluster on this machine. */
export async function benchCluster(): Promise<BenchCluster> {
  await using started = new AsyncDisposableStack()
  const { clients, cluster } = started.use(await startCluster())
  const { installation } = started.use(await installationIn({ clients }))
  const client = started.use(createHttpsClient(installation.ca))
  const tokens = createTokens(installation)
  const admin = await tokens.mint({ subject: 'bench', role: 'platform-admin' })

  const call: Call = async (method, path, { token = admin, body } = {}): Promise<Answer> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const outgoing = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }
    const incoming = await client.send(installation.sharedUrl + path, outgoing)
    return { status: incoming.status, headers: incoming.headers, body: JSON.parse(incoming.text) as Body }
  }
  const instanceBody = (more = {}) => ({
    identifier: 'bench',
    region: installation.region.id,
    motor: installation.motor,
    ...more,
  })
  const tenant = await createTenant({ call, tokens, instanceBody, slug: `bench${randomBytes(6).toString('hex')}` })
  started.defer(() => tenant.remove())
  const store = started.use(createKubernetesStore({ config: await loadClusterConfig({ KUBECONFIG: cluster.kubeconfig }) }))
  const ownership = started.move()
  return {
    ...{ clients, installation, tenant, store },
    namespace: namespaceName(tenant.organization, tenant.namespace),
    auditLog: cluster.auditLog === undefined ? undefined : openAuditLog(cluster.auditLog),
    async metric(name) {
      const each = await Promise.all(installation.metricsUrls.map((url) => metric(url, name)))
      return each.reduce((sum, value) => sum + value, 0)
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}
