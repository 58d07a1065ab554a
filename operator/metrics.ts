import { Gauge, Histogram, type Registry } from 'prom-client'
import type { DatabaseServer } from '../crds/database-server.ts'
import type { DedicatedDatabase } from '../crds/dedicated-database.ts'
import { SHARED_NAMESPACE } from '../crds/names.ts'
import type { SharedInstance } from '../crds/shared-instance.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import type { Cache } from '../store/cache.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { conditionOf } from '../store/conditions.ts'
import type { Admins } from './server/admins.ts'

interface TunnelCaches {
  readonly tunnels: Cache<typeof Tunnel>
  readonly endpoints: Cache<typeof TunnelEndpoint>
}

export interface OperatorMetricsDeps {
  readonly registry: Registry
  readonly instances: Cache<typeof SharedInstance>
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly servers: Cache<typeof DatabaseServer>
  /** Absent in deployments without tunnels. */
  readonly tunnels: TunnelCaches | undefined
  readonly admins: Admins
}

/** Registers the metrics of instances, databases, pools and certificates. */
export function createOperatorMetrics(deps: OperatorMetricsDeps): { readonly claimed: (seconds: number) => void } {
  const { registry, instances, databases, servers, tunnels, admins } = deps
  const hasPool = (name: string): boolean => servers.get({ namespace: SHARED_NAMESPACE, name })?.spec.tenancy === 'shared'
  const claims = new Histogram({
    name: 'mooring_instance_claim_duration_seconds',
    help: 'Time that the claim of a shared instance took, from its first reconcile to its status.',
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
    name: 'mooring_databases',
    help: 'Dedicated databases by their status.',
    labelNames: ['status'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { status } of databases.list()) this.inc({ status: status?.phase ?? 'provisioning' })
    },
  })
  new Gauge({
    name: 'mooring_pool_databases',
    help: 'Spare databases in the warm pools of all servers.',
    registers: [registry],
    async collect() {
      const names = admins.names().filter(hasPool)
      const catalogs = await Promise.allSettled(names.map(async (name) => admins.get(name)?.admin.catalog()))
      this.set(catalogs.reduce((sum, result) => sum + (result.status === 'fulfilled' ? (result.value?.spare ?? 0) : 0), 0))
    },
  })
  if (tunnels) registerTunnels(registry, tunnels)
  return { claimed: (seconds) => claims.observe(seconds) }
}

function registerTunnels(registry: Registry, { tunnels, endpoints }: TunnelCaches): void {
  new Gauge({
    name: 'mooring_tunnels',
    help: 'Tunnels by the status of their certificate.',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { status } of tunnels.list()) this.inc({ certificate: status?.certificate?.status ?? 'pending' })
    },
  })
  new Gauge({
    name: 'mooring_certificate_expiry_timestamp_seconds',
    help: 'Earliest expiry of a certificate of tunnels, and of a certificate of tlsSecretName of an endpoint, in seconds since the epoch; absent without certificates.',
    labelNames: ['of'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [of, cache] of Object.entries({ tunnels, endpoints })) {
        const ends = cache.list().flatMap(({ status }) => Date.parse(status?.certificate?.expiresAt ?? '') || [])
        if (ends.length > 0) this.set({ of }, ends.reduce((first, end) => Math.min(first, end)) / 1_000)
      }
    },
  })
}
