import { setTimeout as delay } from 'node:timers/promises'
import { SYSTEM_NAMESPACE } from '../../../../crds/names.ts'
import type { AuditLog } from '../../../support/api/audit-log.ts'
import { benchCluster } from '../../cluster.ts'
import { type Finding, finding, type Measure } from '../../measure.ts'
import { type Component, mostMemory, podUsage, type PodUsage } from '../../usage.ts'

const INSTANCES = 20
/** Time in which the pool refills, and the garbage of the setup is collected. */
const REST_MS = 20_000
/** Longer than each periodic task: statements are checked every 5 s, sizes and catalogs every 60 s. */
const WATCHED_MS = 120_000
const OURS = `system:serviceaccount:${SYSTEM_NAMESPACE}:`
const COMPONENTS: readonly Component[] = ['operator', 'apiserver']

async function watched(log: AuditLog | undefined): Promise<() => Promise<readonly Finding[]>> {
  const mark = await log?.mark()
  return async () => {
    if (!log || !mark) return [{ what: 'writes', result: 'not measured: the cluster does not show its audit log' }]
    const writes = (await log.writesSince(mark)).filter(({ user }) => user.startsWith(OURS))
    const otherWrites = writes.filter(({ resource }) => resource !== 'leases')
    if (otherWrites.length > 0)
      console.error(`bench: ${otherWrites.map(({ verb, resource }) => `${verb} ${resource}`).join(', ')}`)
    return [
      finding(
        `writes to etcd in ${WATCHED_MS / 1e3} s, without the Lease`,
        { value: otherWrites.length, unit: '', digits: 0 },
        0,
      ),
      finding(`writes of the Lease in ${WATCHED_MS / 1e3} s`, { value: writes.length - otherWrites.length, unit: '', digits: 0 }),
    ]
  }
}

async function run() {
  await using bench = await benchCluster()
  for (let count = 0; count < INSTANCES; count++) await bench.tenant.instance()
  await delay(REST_MS)

  const usage = () => Promise.all(COMPONENTS.map((component) => podUsage(bench.clients, component)))
  const before = await usage()
  const writes = await watched(bench.auditLog)
  await delay(WATCHED_MS)
  const written = await writes()
  const after = await usage()

  const usedBefore = new Map(before.flat().map(({ pod, cpuSeconds }) => [pod, cpuSeconds]))
  const percent = ({ pod, cpuSeconds }: PodUsage): number => (cpuSeconds - (usedBefore.get(pod) ?? 0)) / (WATCHED_MS / 1e5)
  const used = COMPONENTS.flatMap((component, index) => {
    const pods = after[index] ?? []
    return [
      finding(`${component}, memory of a pod (RSS), maximum`, { value: mostMemory(pods), unit: 'MB', digits: 0 }, 150),
      finding(
        `${component}, processor time of a pod, maximum`,
        { value: Math.max(...pods.map(percent)), unit: '%', digits: 2 },
        1,
      ),
    ]
  })
  return [...used, ...written]
}

export const clusterIdle: Measure = {
  name: 'cluster-idle',
  method: `${INSTANCES} instances are created through the API. After ${REST_MS / 1_000} s of rest, /proc in each pod gives the processor time of ${WATCHED_MS / 1_000} s, as a share of one core, and the resident memory at the end. The audit log of the API server counts the writes of Mooring's service accounts in that time.`,
  run,
}
