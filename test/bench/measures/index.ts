import type { Measure } from '../measure.ts'
import { clusterCreate, clusterInstall } from './cluster-create.ts'
import { clusterIdle } from './cluster-idle.ts'
import { clusterTenThousand } from './cluster-ten-thousand.ts'
import { clusterTunnels } from './cluster-tunnels.ts'
import { createInstance, createMany } from './create-instance.ts'
import { idle, coldStart, warmStart } from './start.ts'
import { journalMeasure, tunnelJournal } from './journal.ts'
import { tenThousand } from './ten-thousand.ts'
import { tunnelBulk, tunnelFairness } from './tunnel-bulk.ts'
import { tunnelConfig } from './tunnel-config.ts'
import { tunnelHttps, tunnelConnections, tunnelMany, tunnelRequests, tunnelStart } from './tunnel-requests.ts'
import { tunnelIdle, tunnelMemory } from './tunnel-memory.ts'

/** Measures of each group, in the order in which they run. A new measure is a constant of a file here and one line below. */
export const MEASURES: Readonly<Record<'embedded' | 'cluster' | 'tunnel', readonly Measure[]>> = {
  embedded: [createInstance, createMany, warmStart, coldStart, idle, tenThousand],
  tunnel: [
    ...[tunnelRequests, tunnelMany, tunnelConnections, tunnelHttps, tunnelBulk, tunnelFairness],
    ...[tunnelStart, tunnelIdle, tunnelMemory, tunnelConfig, tunnelJournal, journalMeasure],
  ],
  cluster: [clusterCreate, clusterIdle, clusterInstall, clusterTenThousand, clusterTunnels],
}
