import type { Measure } from '../measure.ts'
import { clusterCreate } from './cluster-create.ts'
import { clusterIdle } from './cluster-idle.ts'
import { clusterInstall } from './cluster-install.ts'
import { clusterTenThousand } from './cluster-ten-thousand.ts'
import { clusterTunnels } from './cluster-tunnels.ts'
import { createInstance } from './create-instance.ts'
import { createMany } from './create-many.ts'
import { idle } from './idle.ts'
import { journalMeasure } from './journal.ts'
import { coldStart, warmStart } from './start.ts'
import { tenThousand } from './ten-thousand.ts'
import { tunnelBulk, tunnelFairness } from './tunnel-bulk.ts'
import { tunnelConfig } from './tunnel-config.ts'
import { tunnelHttps } from './tunnel-https.ts'
import { tunnelIdle } from './tunnel-idle.ts'
import { tunnelJournal } from './tunnel-journal.ts'
import { tunnelMemory } from './tunnel-memory.ts'
import { tunnelConnections, tunnelMany, tunnelRequests } from './tunnel-requests.ts'
import { tunnelStart } from './tunnel-start.ts'

/** Measures of each group, in the order in which they run. A new measure is one file and one line here. */
export const MEASURES: Readonly<Record<'embedded' | 'cluster' | 'tunnel', readonly Measure[]>> = {
  embedded: [createInstance, createMany, warmStart, coldStart, idle, tenThousand],
  tunnel: [
    ...[tunnelRequests, tunnelMany, tunnelConnections, tunnelHttps, tunnelBulk, tunnelFairness],
    ...[tunnelStart, tunnelIdle, tunnelMemory, tunnelConfig, tunnelJournal, journalMeasure],
  ],
  cluster: [clusterCreate, clusterIdle, clusterInstall, clusterTenThousand, clusterTunnels],
}
