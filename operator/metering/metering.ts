import type { Registry } from 'prom-client'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { DatabaseJournal } from '../../journal/databases.ts'
import { type ArchiveMetricsDeps, registerArchives } from './archive-metrics.ts'
import { registerSamples } from './sample-metrics.ts'
import { createSampler, type SamplerDeps } from './sampler.ts'
import { createUsageRecorder, type UsageRecorderDeps } from './usage-recorder.ts'

export interface MeteringDeps extends Omit<UsageRecorderDeps & SamplerDeps & ArchiveMetricsDeps, 'records'> {
  readonly registry: Registry
  /** Parts of an installation with edges, of which only the journal is used. Absent: there is no journal. */
  readonly tunnels?: { readonly journal: DatabaseJournal } | undefined
}

/** Records the usage of dedicated databases, and samples those with monitoring. */
export interface Metering {
  /** Records and samples until `signal` aborts. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** Records the use of a database that is being deleted. Does nothing in an installation without a journal. */
  readonly finishUsage: (database: DedicatedDatabase) => Promise<void>
  /** Returns the end of the last recorded hour of a database, in milliseconds since the epoch; Infinity in an installation without a journal. */
  readonly usageRecordedUntil: (database: DedicatedDatabase) => Promise<number>
}

/** Drops samples, for an installation without a journal: only the metrics show them. */
const NOWHERE: SamplerDeps['records'] = { keepSamples: () => Promise.resolve() }

export function createMetering(deps: MeteringDeps): Metering {
  const records = deps.tunnels?.journal.databases
  const usage = records && createUsageRecorder({ ...deps, records })
  const sampler = createSampler({ ...deps, records: records ?? NOWHERE })
  registerSamples(deps.registry, sampler)
  registerArchives(deps.registry, deps)
  return {
    async run(signal) {
      await Promise.all([usage?.run(signal), sampler.run(signal)])
    },
    finishUsage: async (database) => usage?.finish(database),
    usageRecordedUntil: async (database) => (usage ? usage.recordedUntil(database) : Infinity),
  }
}
