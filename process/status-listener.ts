import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readdir, readFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Registry, Counter, Gauge } from 'prom-client'
import { MooringError } from '../shared/errors.ts'
import { isLoopbackAddress, isLoopbackHost, wrongHost } from './listeners.ts'
import { PROGRAM_VERSION } from './version.ts'

export interface StatusDeps {
  readonly registry: Registry
  readonly host: string
  readonly port: number | 'auto'
  /** Returns whether the process is ready. Default: always. */
  readonly isReady?: () => boolean
}

/** Plain HTTP listener for metrics, health and readiness of the process. */
export interface StatusListener extends AsyncDisposable {
  readonly metricsUrl: string
}

/**
 * Serves `/metrics` (process metrics included), `/healthz` and `/readyz`. A listener on loopback answers 421 when `Host` names another
 * machine. Other listeners accept any `Host`, because kubelet and Prometheus name a pod by its address.
 * @throws MooringError `port_in_use`
 */
export async function startStatus({ registry, host, port, isReady = () => true }: StatusDeps): Promise<StatusListener> {
  const answers: Readonly<Record<string, (res: ServerResponse) => void>> = {
    '/metrics': (res) => {
      registry.metrics().then(
        (text) => res.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
        () => res.writeHead(500).end(),
      )
    },
    '/healthz': (res) => res.writeHead(200).end('ok'),
    '/readyz': (res) => (isReady() ? res.writeHead(200).end('ready') : res.writeHead(503).end('not ready')),
  }
  const isLocal = isLoopbackAddress(host)
  const server = createServer((req, res) => {
    const named = req.headers.host
    if (isLocal && named !== undefined && !isLoopbackHost(named)) {
      res.writeHead(421, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${wrongHost(named)}\n`)
      return
    }
    const answer = answers[req.url ?? '']
    if (answer) answer(res)
    else res.writeHead(404).end()
  })
  await new Promise<void>((resolve, reject) => {
    // Stays registered: when the process has no free descriptor, accept() fails with an error of the server, which would end the process.
    server.on('error', (cause) => {
      const message = `port ${port} on ${host} cannot be used: choose another with --metrics-port`
      reject(new MooringError('port_in_use', message, { cause }))
    })
    server.listen(port === 'auto' ? 0 : port, host, resolve)
  })
  registerProcessMetrics(registry)
  return {
    metricsUrl: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}/metrics`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Registers `mooring_build_info` and the standard process metrics (Prometheus, "Writing client libraries", "Process metrics"). Values are
 * read at each scrape. Call it once per registry.
 *
 * prom-client's default metrics are not used: their event-loop monitor wakes an idle process 100 times per second.
 */
export function registerProcessMetrics(registry: Registry): void {
  const registers = [registry]
  new Gauge({
    name: 'mooring_build_info',
    help: 'Version of the program; the value is always 1.',
    labelNames: ['version'],
    registers,
  }).set({ version: PROGRAM_VERSION }, 1)
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'User and system CPU time of the process in seconds.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    },
  })
  new Gauge({
    name: 'process_start_time_seconds',
    help: 'Start of the process in seconds since the epoch.',
    registers,
  }).set(Math.round(performance.timeOrigin / 1e3))
  gauge('process_resident_memory_bytes', 'Resident memory of the process in bytes.', () => process.memoryUsage.rss())
  gauge('process_open_fds', 'Open file descriptors of the process.', openDescriptors)
  gauge('process_max_fds', 'Highest number of file descriptors that the process may have open.', maxDescriptors)

  function gauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read())
      },
    })
  }
}

/** Returns the number of open descriptors, without the one that lists the directory. */
const openDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length - 1

/** Returns the soft limit of proc_pid_limits(5); NaN when it is unlimited. */
async function maxDescriptors(): Promise<number> {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8')) ?? []
  return Number(soft)
}

/** Interval of the timer. At 50 ms, the timer would cost an idle process 0.1 % of a core, a tenth of its budget. */
const RESOLUTION_MS = 250
/** Percentiles by value of the label `statistic`. The label `quantile` is reserved for summaries; these values cover only the time since the last scrape. */
const STATISTICS = { p50: 50, p99: 99, max: 100 } as const

/** Registers `mooring_event_loop_delay_seconds`: how late timers fire. Call it once per registry; dispose of the result to stop. */
export function watchEventLoop(registry: Registry): Disposable {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  new Gauge({
    name: 'mooring_event_loop_delay_seconds',
    help: 'How late timers of the event loop fired since the last scrape.',
    labelNames: ['statistic'],
    registers: [registry],
    collect() {
      for (const [statistic, percentile] of Object.entries(STATISTICS)) {
        const lateMs = delay.percentile(percentile) / 1e6 - RESOLUTION_MS
        this.set({ statistic }, Math.max(0, lateMs) / 1e3)
      }
      delay.reset()
    },
  })
  return { [Symbol.dispose]: () => delay.disable() }
}
