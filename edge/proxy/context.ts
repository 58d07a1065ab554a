import type { Logger } from 'pino'
import type { AddressList } from '../../crds/formats/address-list.ts'
import type { TunnelConfig } from '../../crds/tunnel-config.ts'
import type { JournalWriter } from '../../journal/port.ts'
import type { EdgeClock } from '../clock.ts'
import type { Counts } from '../counters.ts'
import type { Routes } from '../route.ts'
import type { Sessions } from '../sessions.ts'
import type { ProxyLimits } from './limits.ts'
import type { ProxyMetrics } from './metrics.ts'
import type { PreparedModifications } from './head/forward-fields.ts'
import type { Pools } from './upstream/pool.ts'

/** Connection that the proxy checks at intervals and ends. */
export interface Watched {
  tick(now: number): void
  /** Ends requests to these tunnels, by hostname, that their new settings no longer allow. */
  recheck(hostnames: ReadonlySet<string>): void
  /** Finishes the requests in progress and takes no more. */
  drain(): void
  /** Ends the requests in progress because the edge stops, with an error response where none has begun. */
  destroy(): void
}

/** State that all connections of a proxy share. */
export interface ProxyContext extends EdgeClock {
  readonly routes: Routes
  readonly sessions: Pick<Sessions, 'pick' | 'refused' | 'waitFor' | 'of'>
  readonly journal: Pick<JournalWriter, 'request'>
  readonly metrics: ProxyMetrics
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly limits: ProxyLimits
  readonly publicPorts: { readonly http: number; readonly https: number }
  /** Trusted balancers, whose X-Forwarded fields are used. Undefined: none. */
  readonly trusted: AddressList | undefined
  /** Returns the response to an ACME challenge; undefined when no order of this installation has such a challenge. */
  readonly challenge: (host: string, token: string) => string | undefined
  readonly pools: Pools
  /** Number of requests in progress of each tunnel, by hostname. */
  readonly load: Counts
  readonly modificationsOf: (config: TunnelConfig) => PreparedModifications
  readonly connections: Set<Watched>
  /** True once the proxy drains: connections are closed after their response. */
  draining: boolean
}
