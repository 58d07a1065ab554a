import { setTimeout as delay } from 'node:timers/promises'
import { Secret } from '../../../../crds/core.ts'
import { SHARED_NAMESPACE } from '../../../../crds/names.ts'
import { adminSecretName } from '../../../../operator/server/credentials.ts'
import { decodeSecret } from '../../../../operator/secret-data.ts'
import { secretName } from '../../../../operator/shared-instance/credentials.ts'
import type { Key, Store } from '../../../../store/port.ts'
import { installationIn } from '../../../support/deployment/cluster.ts'
import { type FreshCluster, freshCluster, scaleOperator } from '../../fresh-cluster.ts'
import { finding, type Measure } from '../../measure.ts'
import { areSettled, sumOf, until } from '../../metrics.ts'
import { mostMemory, podUsage } from '../../usage.ts'
import { copyInstanceIn, enterDatabases } from '../../seed.ts'

const INSTANCES = 10_000
const REST_MS = 10_000
/** Timeout far above the target, so that a missed target still has a figure. */
const SELDOM = { patienceMs: 600_000, everyMs: 500 }
/** Long enough for at least one sweep of sizes and catalogs. */
const WATCHED_MS = 75_000

/** Creates ten thousand instances while no operator runs, which would claim them. */
async function seed(cluster: FreshCluster): Promise<void> {
  const { store } = cluster
  const model = await cluster.firstInstance()
  await scaleOperator(cluster, 0)
  const names = await copyInstanceIn(store, INSTANCES)
  const own = await valuesOf(store, { namespace: model.metadata.namespace, name: secretName(model) })
  const server = model.status?.serverRef?.name ?? ''
  const admin = await valuesOf(store, { namespace: SHARED_NAMESPACE, name: adminSecretName(server) })
  const at = { host: own('host'), port: Number(own('port')), ssl: { ca: own('ca.crt') } }
  await enterDatabases({ ...at, user: admin('username'), password: admin('password') }, own('database'), names)
}

/** Returns a function that reads the values of a Secret. @throws Error for a missing value */
async function valuesOf(store: Store, key: Key): Promise<(name: string) => string> {
  const secret = await store.get(Secret, key)
  return (name) => {
    const value = decodeSecret(secret?.data ?? {}, name)
    if (value === undefined) throw new Error(`the Secret ${key.name} has no ${name}`)
    return value
  }
}

const CLAIMED = 'controller="shared-instance",result="settled",reason="Claimed"'

async function run() {
  await using cluster = await freshCluster()
  await cluster.install()
  await seed(cluster)

  const start = performance.now()
  await scaleOperator(cluster, 1)
  const readyMs = performance.now() - start
  await using deployment = await installationIn(cluster)
  const { metricsUrls } = deployment.installation
  await until('all instances are settled', () => areSettled(metricsUrls, CLAIMED, INSTANCES), SELDOM)
  const settledMs = performance.now() - start
  await delay(REST_MS)
  const before = await sumOf(metricsUrls, 'mooring_reconcile_total')
  await delay(WATCHED_MS)
  const work = (await sumOf(metricsUrls, 'mooring_reconcile_total')) - before
  return [
    finding('operator: start of the pod to ready', { value: readyMs / 1e3, unit: 's' }),
    finding('operator: start of the pod to settled', { value: settledMs / 1e3, unit: 's' }, 30),
    finding(
      'operator, memory (RSS)',
      { value: mostMemory(await podUsage(cluster.clients, 'operator')), unit: 'MB', digits: 0 },
      300,
    ),
    finding('apiserver, memory of a pod (RSS), maximum', {
      value: mostMemory(await podUsage(cluster.clients, 'apiserver')),
      unit: 'MB',
      digits: 0,
    }),
    finding(`reconciles in ${WATCHED_MS / 1_000} s without a change`, { value: work, unit: '', digits: 0 }, 0),
  ]
}

export const clusterTenThousand: Measure = {
  name: 'cluster-ten-thousand',
  method: `In a new cluster, one instance is copied ${INSTANCES} times through the Kubernetes API, with its Secret and settled status, while the operator has no replica. The databases and logins of the copies are entered into the catalog of the server as rows without files. Then one operator starts. It is settled when each instance was reconciled and all queues are empty.`,
  run,
}
