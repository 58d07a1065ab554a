import { Gauge, type Registry } from 'prom-client'
import type { DatabaseSample } from '../../journal/databases.ts'
import type { Sampler } from './sampler.ts'

/** Metrics of a database with monitoring, by the name after `mooring_database_`. */
const METRICS: Readonly<Record<string, readonly [field: keyof DatabaseSample, help: string]>> = {
  connections: ['connections', 'Open connections to a dedicated database.'],
  size_bytes: ['sizeBytes', 'Bytes of a dedicated database on disk.'],
  transactions_per_second: ['transactionsPerSecond', 'Ended transactions per second of a dedicated database.'],
  cache_hit_ratio: ['cacheHitRatio', 'Share of page reads that the cache of a dedicated database served, 0 to 1.'],
  slow_statements: ['slowStatements', 'Statements of 1 s or longer of a dedicated database, since the last sample or at it.'],
}

/**
 * Registers the metrics of the databases with monitoring. Values that are not known are absent. The number of time series is bounded by the
 * quotas of the namespaces.
 */
export function registerSamples(registry: Registry, { latest }: Pick<Sampler, 'latest'>): void {
  for (const [name, [field, help]] of Object.entries(METRICS)) {
    new Gauge({
      name: `mooring_database_${name}`,
      help,
      labelNames: ['namespace', 'database'],
      registers: [registry],
      collect() {
        this.reset()
        for (const { namespace, name: database, sample } of latest()) {
          const value = sample[field]
          if (value !== null) this.set({ namespace, database }, value)
        }
      },
    })
  }
}
