import { Gauge, Histogram, type Registry } from 'prom-client'
import type { SharedInstance } from '../crds/shared-instance.ts'
import type { Cache } from '../store/cache.ts'
import { conditionOf } from '../store/conditions.ts'
import type { Admins } from './server/admins.ts'

export interface OperatorMetricsDeps {
  readonly registry: Registry
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
}

/** Registers what the operator knows of instances and pools (surface, section 7). */
export function createOperatorMetrics({ registry, instances, admins }: OperatorMetricsDeps): {
  readonly claimed: (seconds: number) => void
} {
  const claims = new Histogram({
    name: 'mooring_instance_claim_duration_seconds',
    help: 'Time that the claim of a shared instance took, from the first look at it to its status.',
    buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 25],
    registers: [registry],
  })
  new Gauge({
    name: 'mooring_instances',
    help: 'Shared instances by the reason of their Ready condition.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset()
      for (const instance of instances.list()) this.inc({ reason: conditionOf(instance, 'Ready')?.reason ?? 'New' })
    },
  })
  new Gauge({
    name: 'mooring_pool_databases',
    help: 'Spare databases in the warm pools of all servers.',
    registers: [registry],
    async collect() {
      const catalogs = await Promise.allSettled(admins.names().map(async (name) => admins.get(name)?.admin.catalog()))
      this.set(catalogs.reduce((sum, result) => sum + (result.status === 'fulfilled' ? (result.value?.spare ?? 0) : 0), 0))
    },
  })
  return { claimed: (seconds) => claims.observe(seconds) }
}
