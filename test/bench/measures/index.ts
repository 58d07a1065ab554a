import type { Measure } from '../measure.ts'
import { acmeDue, acmeIssue } from './acme.ts'
import { archivingCost, restoreTime } from './backups.ts'
import { clusterCreate, clusterInstall } from './cluster/cluster-create.ts'
import { clusterIdle } from './cluster/cluster-idle.ts'
import { clusterMotors } from './cluster/cluster-motors.ts'
import { clusterTenThousand } from './cluster/cluster-ten-thousand.ts'
import { clusterTunnels } from './cluster/cluster-tunnels.ts'
import { createInstance, createMany } from './create-instance.ts'
import { dashboard } from './dashboard.ts'
import { dedicatedCreate } from './dedicated.ts'
import { idle, coldStart, warmStart } from './start.ts'
import { journalMeasure, tunnelJournal } from './journal.ts'
import { motorFlood } from './motor-flood.ts'
import { coldMotors, createMotors, motorMemory } from './motors.ts'
import { sshTunnel } from './ssh-tunnel.ts'
import { tenThousand } from './ten-thousand.ts'
import { tunnelBulk, tunnelFairness } from './tunnel-bulk.ts'
import { tunnelConfig } from './tunnel-config.ts'
import { tunnelHttps, tunnelConnections, tunnelMany, tunnelRequests, tunnelStart } from './tunnel-requests.ts'
import { tunnelIdle, tunnelMemory } from './tunnel-memory.ts'
import { webhookLatency, webhookMany } from './webhooks.ts'

/** Measures of each group, in the order in which they run. A new measure is a constant of a file here and one line below. */
export const MEASURES: Readonly<Record<'embedded' | 'motors' | 'cluster' | 'tunnel', readonly Measure[]>> = {
  embedded: [createInstance, createMany, warmStart, coldStart, idle, tenThousand],
  motors: [createMotors, coldMotors, motorMemory, motorFlood, dedicatedCreate, archivingCost, restoreTime],
  tunnel: [
    ...[tunnelRequests, tunnelMany, tunnelConnections, tunnelHttps, tunnelBulk, tunnelFairness],
    ...[tunnelStart, tunnelIdle, tunnelMemory, tunnelConfig, tunnelJournal, journalMeasure],
    ...[webhookLatency, webhookMany, acmeIssue, acmeDue, dashboard, sshTunnel],
  ],
  cluster: [clusterCreate, clusterMotors, clusterIdle, clusterInstall, clusterTenThousand, clusterTunnels],
}
