import { Counter, Gauge, type Registry, Histogram, type HistogramConfiguration } from 'prom-client'
import type { RequestRecord } from '../../journal/port.ts'
import type { Pools } from './upstream/pool.ts'

/** Metrics of the proxy. Labels never name a tunnel, a host or a path. */
export interface ProxyMetrics {
  finished(record: Pick<RequestRecord, 'protocol' | 'origin' | 'reason' | 'status' | 'durationMs' | 'bytesIn' | 'bytesOut'>): void
  /** Counts a request that was rejected before its tunnel was known. */
  stopped(status: number, reason: string): void
  connected(protocol: ConnectionProtocol): void
  disconnected(protocol: ConnectionProtocol): void
}

export type ConnectionProtocol = 'http' | 'https' | 'h2'

interface Deps {
  readonly registry: Registry
  readonly pools: Pick<Pools, 'idle'>
}

const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 100]

/**
 * Creates the metrics. Sums are kept in plain numbers and copied when metrics are read: a labelled counter costs more than parsing a
 * request's head.
 */
export function createProxyMetrics({ registry, pools }: Deps): ProxyMetrics {
  const registers = [registry]
  const requests = new Map<string, { readonly labels: Record<string, string>; count: number }>()
  const bytes = { in: 0, out: 0 }
  const connections: Record<ConnectionProtocol, number> = { http: 0, https: 0, h2: 0 }

  new Counter({
    name: 'mooring_edge_requests_total',
    help: 'Requests of visitors that were answered, by the backend or by the edge itself.',
    labelNames: ['protocol', 'status', 'origin', 'reason'],
    registers,
    collect() {
      this.reset()
      for (const { labels, count } of requests.values()) this.inc(labels, count)
      for (const [protocol, classes] of Object.entries(answered)) {
        for (const [index, total] of classes.entries()) {
          if (total > 0) this.inc({ protocol, status: `${index}xx`, origin: 'backend', reason: '' }, total)
        }
      }
    },
  })
  new Counter({
    name: 'mooring_edge_body_bytes_total',
    help: 'Bytes of bodies, of requests (in) and responses (out).',
    labelNames: ['direction'],
    registers,
    collect() {
      this.reset()
      this.inc({ direction: 'in' }, bytes.in)
      this.inc({ direction: 'out' }, bytes.out)
    },
  })
  new Gauge({
    name: 'mooring_edge_visitor_connections',
    help: 'Connections of visitors that are open.',
    labelNames: ['protocol'],
    registers,
    collect() {
      for (const [protocol, count] of Object.entries(connections)) this.set({ protocol }, count)
    },
  })
  new Gauge({
    name: 'mooring_edge_idle_channels',
    help: 'Idle channels to backends.',
    registers,
    collect() {
      this.set(pools.idle)
    },
  })
  const durations = new TalliedHistogram({
    name: 'mooring_edge_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['origin'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const taken = { backend: durations.tally({ origin: 'backend' }), edge: durations.tally({ origin: 'edge' }) }

  function count(protocol: string, status: number, origin: string, reason: string): void {
    const key = `${protocol} ${status} ${origin} ${reason}`
    const entry = requests.get(key)
    if (entry) entry.count++
    else requests.set(key, { labels: { protocol, status: `${status / 100}xx`, origin, reason }, count: 1 })
  }

  /** Responses of backends by status class: nearly all responses, counted without building a key. */
  const answered: Record<RequestRecord['protocol'], number[]> = { 'http/1.1': [0, 0, 0, 0, 0, 0], h2: [0, 0, 0, 0, 0, 0] }

  /** Backends may send any status: classes bound the number of counters. */
  const classOf = (status: number): number => Math.floor(status / 100)

  return {
    finished({ protocol, origin, reason, status, durationMs, bytesIn, bytesOut }) {
      const statusClass = classOf(status)
      if (origin === 'backend' && reason === null) answered[protocol][statusClass] = (answered[protocol][statusClass] ?? 0) + 1
      else count(protocol, statusClass * 100, origin, reason ?? '')
      taken[origin].add(durationMs / 1000)
      bytes.in += bytesIn
      bytes.out += bytesOut
    },
    stopped: (status, reason) => count('unknown', classOf(status) * 100, 'edge', reason),
    connected: (protocol) => connections[protocol]++,
    disconnected: (protocol) => connections[protocol]--,
  }
}

type Labels = Readonly<Record<string, string>>

/** One line of the Prometheus format. */
interface Value {
  readonly metricName: string
  readonly labels: Readonly<Record<string, number | string>>
  readonly sharedLabels: Labels
  readonly value: number
}

/** Observations of one combination of labels, in plain numbers. */
class Tally {
  readonly labels: Labels
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0
  #count = 0

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels
    this.#bounds = bounds
    this.#counts = bounds.map(() => 0)
  }

  add(value: number): void {
    this.#sum += value
    this.#count++
    let index = 0
    while (index < this.#bounds.length && value > (this.#bounds[index] ?? Infinity)) index++
    // A value above the last bound counts only in sum and count.
    if (index < this.#counts.length) this.#counts[index] = (this.#counts[index] ?? 0) + 1
  }

  /** Returns the values for Prometheus: each bucket includes the buckets below it. */
  values(name: string): Value[] {
    const of = (suffix: string, value: number, labels: Value['labels'] = {}): Value => ({
      metricName: `${name}_${suffix}`,
      labels,
      sharedLabels: this.labels,
      value,
    })
    let below = 0
    const buckets = this.#bounds.map((le, index) => of('bucket', (below += this.#counts[index] ?? 0), { le }))
    return [...buckets, of('bucket', this.#count, { le: '+Inf' }), of('sum', this.#sum), of('count', this.#count)]
  }
}

interface Configuration extends HistogramConfiguration<string> {
  readonly buckets: number[]
}

/** Histogram that keeps sums in plain numbers: `observe` of prom-client costs more than parsing a request's head. */
export class TalliedHistogram extends Histogram {
  readonly #shown: { readonly name: string; readonly help: string }
  readonly #buckets: readonly number[]
  readonly #tallies: Tally[] = []

  constructor(configuration: Configuration) {
    super(configuration)
    this.#shown = { name: configuration.name, help: configuration.help }
    this.#buckets = configuration.buckets
  }

  /** Creates the tally of one combination of labels; called once for each. */
  tally(labels: Labels): Tally {
    const tally = new Tally(labels, this.#buckets)
    this.#tallies.push(tally)
    return tally
  }

  /** Called by prom-client for each format, although its types do not declare it. */
  async getForPromString(): Promise<object> {
    const values = this.#tallies.flatMap((tally) => tally.values(this.#shown.name))
    return { ...this.#shown, type: 'histogram', aggregator: 'sum', values }
  }
}
