import { readdir, readFile } from 'node:fs/promises'
import { Counter, Gauge, type Registry } from 'prom-client'
import { PROGRAM_VERSION } from './version.ts'

/**
 * Registers `mooring_build_info` and the metrics of a process that every Prometheus client library has (Prometheus, "Writing client libraries",
 * section "Process metrics"). Values are read at each scrape. Once a registry.
 *
 * The default metrics of prom-client are not used: their monitor of the event loop wakes an idle process a hundred times a second.
 */
export function registerProcessMetrics(registry: Registry): void {
  const registers = [registry]
  new Gauge({
    ...{ name: 'mooring_build_info', help: 'Version of the program; the value is always 1.', labelNames: ['version'], registers },
  }).set({ version: PROGRAM_VERSION }, 1)
  new Counter({
    ...{ name: 'process_cpu_seconds_total', help: 'User and system CPU time of the process in seconds.', registers },
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    },
  })
  new Gauge({
    ...{ name: 'process_start_time_seconds', help: 'Start of the process in seconds since the epoch.', registers },
  }).set(Math.round(performance.timeOrigin / 1e3))
  gauge('process_resident_memory_bytes', 'Resident memory of the process in bytes.', () => process.memoryUsage.rss())
  gauge('process_open_fds', 'Open file descriptors of the process.', openDescriptors)
  gauge('process_max_fds', 'Highest number of file descriptors that the process may have open.', maxDescriptors)

  function gauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      ...{ name, help, registers },
      async collect() {
        this.set(await read())
      },
    })
  }
}

/** One is the directory itself, while it is read. */
const openDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length - 1

/** The soft limit of proc_pid_limits(5). NaN where it is unlimited. */
async function maxDescriptors(): Promise<number> {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8')) ?? []
  return Number(soft)
}
