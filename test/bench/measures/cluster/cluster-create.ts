import { SharedInstance } from '../../../../crds/shared-instance.ts'
import { sequentialWrites } from '../../../support/api/audit-log.ts'
import type { Call } from '../../../support/api/answers.ts'
import { expectSuccess } from '../../../support/api/tenant.ts'
import { type BenchCluster, benchCluster } from '../../cluster.ts'
import { type Finding, finding, type Measure } from '../../measure.ts'
import { until } from '../../metrics.ts'
import { type ReadyWatch, watchReady, freshCluster } from '../../fresh-cluster.ts'
import { quantile, summary, timed } from '../../statistics.ts'

const ROUNDS = 150
const WARM_UP = 10
/** Size of the warm pool in the chart's defaults. */
const POOL = 5

/** Prefix of the user names of Mooring's service accounts. */
const MOORING = 'system:serviceaccount:mooring-system:'

interface Sample {
  readonly ms: number
  /** Number of Mooring's sequential writes from the request until the instance was ready; undefined without an audit log. */
  readonly writes: number | undefined
}

interface Way {
  readonly make: () => Promise<unknown>
  readonly remove: () => Promise<unknown>
}

/** Measures one way of creating an instance, and deletes the instance. */
async function sample({ auditLog, namespace }: BenchCluster, { make, remove }: Way): Promise<Sample> {
  const mark = await auditLog?.mark()
  const ms = await timed(make)
  const until = Date.now()
  await remove()
  // Read after the removal: a watch reports a write before the audit log has it.
  const all = mark && (await auditLog?.writesSince(mark))
  const own = all?.filter((write) => write.namespace === namespace && write.user.startsWith(MOORING))
  const done = own?.filter(({ code, from }) => code < 300 && from <= until)
  return { ms, writes: done && sequentialWrites(done) }
}

/** @param editor sends requests as one member of the tenant */
function byRest(bench: BenchCluster, editor: Call): Promise<Sample> {
  const { region, motor } = bench.installation
  const body = { identifier: 'bench', region: region.id, motor }
  let id = ''
  return sample(bench, {
    make: async () => ({ id } = (await expectSuccess(editor('POST', '/v1/instances', { body }))).body.data.instance),
    remove: () => expectSuccess(editor('DELETE', `/v1/instances/${id}`)),
  })
}

function byResource(bench: BenchCluster, watch: ReadyWatch, name: string): Promise<Sample> {
  const { namespace, store, installation } = bench
  const key = { namespace, name }
  const spec = { identifier: 'bench', region: installation.region.id, motor: 'postgresql-15.4.0' } as const
  return sample(bench, {
    async make() {
      await store.create(SharedInstance, { metadata: key, spec })
      await watch.ready(name)
    },
    async remove() {
      await store.delete(SharedInstance, key)
      await watch.gone(name)
    },
  })
}

const LIMITS = { POST: { p50: 50, p99: 200 }, 'create to Ready': { p50: 50, p99: undefined } } as const

function findingsOf(what: keyof typeof LIMITS, samples: readonly Sample[]): readonly Finding[] {
  const times = samples.map(({ ms }) => ms)
  const { median, mad, p99 } = summary(times)
  const writes = samples.flatMap((each) => each.writes ?? [])
  return [
    finding(`${what}, p10`, { value: quantile(times, 0.1), unit: 'ms' }),
    finding(`${what}, p50`, { value: median, unit: 'ms', spread: `MAD ${mad.toFixed(1)}` }, LIMITS[what].p50),
    finding(`${what}, p99`, { value: p99, unit: 'ms' }, LIMITS[what].p99),
    writes.length === 0
      ? { what: `${what}: sequential writes`, result: 'not measured: the cluster does not show its audit log' }
      : finding(`${what}: sequential writes, maximum`, { value: Math.max(...writes), unit: '', digits: 0 }, 3),
  ]
}

async function run() {
  await using bench = await benchCluster()
  await using watch = await watchReady(bench.store, bench.namespace)
  const editor = bench.tenant.as('editor')
  const posts: Sample[] = []
  const resources: Sample[] = []
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const full = () => until('the pool is full', async () => (await bench.metric('mooring_pool_databases')) >= POOL)
    await full()
    posts.push(await byRest(bench, editor))
    await full()
    resources.push(await byResource(bench, watch, `bench-${round}`))
  }
  return [...findingsOf('POST', posts.slice(WARM_UP)), ...findingsOf('create to Ready', resources.slice(WARM_UP))]
}

export const clusterCreate: Measure = {
  name: 'cluster-create',
  method: `${ROUNDS} rounds, each with a full warm pool. A round times one POST /v1/instances over a keep-alive HTTPS connection to a node's port. It then times one SharedInstance created at the Kubernetes API, as \`kubectl apply\` does, until a watch reports it as ready. Deletion of both is not timed. The audit log of the API server counts the writes of Mooring's service accounts in the tenant's namespace.`,
  run,
}

const INSTALL_ROUNDS = 3

async function runInstall() {
  const installed: number[] = []
  const first: number[] = []
  for (let round = 0; round < INSTALL_ROUNDS; round++) {
    await using cluster = await freshCluster()
    const install = await timed(() => cluster.install())
    installed.push(install / 1e3)
    first.push((install + (await timed(() => cluster.firstInstance()))) / 1e3)
  }
  const seconds = (what: string, samples: readonly number[], limit?: number) =>
    finding(what, { value: summary(samples).median, unit: 's', spread: `worst ${Math.max(...samples).toFixed(1)}` }, limit)
  return [seconds('helm install to first database', first, 60), seconds('of that, helm install --wait', installed)]
}

export const clusterInstall: Measure = {
  name: 'cluster-install',
  method: `${INSTALL_ROUNDS} rounds, each in a new cluster of one node that has the images. A round times \`helm install --wait\`, and then the creation of a labelled Namespace and of a SharedInstance in it, until a watch reports the instance as ready.`,
  run: runInstall,
}
