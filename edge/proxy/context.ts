import type { Logger } from 'pino'
import type { AddressList } from '../../crds/formats/address-list.ts'
import type { TunnelConfig } from '../../crds/tunnel-config.ts'
import type { JournalWriter } from '../../journal/port.ts'
import type { EdgeClock } from '../clock.ts'
import type { Counts } from '../counts.ts'
import type { Routes } from '../route.ts'
import type { Sessions } from '../session.ts'
import type { ProxyLimits } from './limits.ts'
import type { ProxyMetrics } from './metrics.ts'
import type { PreparedModifications } from './head/modifications.ts'
import type { Pools } from './upstream/pool.ts'

/** What looks after its own deadlines, whenever it is asked to. */
export interface Watched {
  tick(now: number): void
  /** Ends the requests of these tunnels, by hostname, that their new settings do not allow any more. */
  recheck(hostnames: ReadonlySet<string>): void
  /** Finishes what is under way and takes no more. */
  drain(): void
  /** The edge stops: ends what is still under way, and tells its visitor where that can be. */
  destroy(): void
}

/** What all connections of a proxy share. */
export interface ProxyContext extends EdgeClock {
  readonly routes: Routes
  readonly sessions: Pick<Sessions, 'pick' | 'refused' | 'waitFor' | 'of'>
  readonly journal: Pick<JournalWriter, 'request'>
  readonly metrics: ProxyMetrics
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly limits: ProxyLimits
  readonly publicPorts: { readonly http: number; readonly https: number }
  /** Balancers that are believed; undefined: none. */
  readonly trusted: AddressList | undefined
  /** What a certificate authority is to be answered; undefined: nobody has ordered that. */
  readonly challenge: (host: string, token: string) => string | undefined
  readonly pools: Pools
  /** Requests that each tunnel has under way, by hostname. */
  readonly load: Counts
  readonly modificationsOf: (config: TunnelConfig) => PreparedModifications
  readonly connections: Set<Watched>
  /** Set once the proxy is to end: connections are not kept any more. */
  draining: boolean
}
