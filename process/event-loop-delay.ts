import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'

/** Each time wakes the process: twenty times a second cost one at rest a thousandth of a core, which is a tenth of all it may use. */
const RESOLUTION_MS = 250
/** Not the label `quantile`, which is a summary's: these are of the time since the last scrape alone. */
const STATISTICS = { p50: 50, p99: 99, max: 100 } as const

/** Registers how late timers fire in this process (surface, section 7). Once a registry. Dispose of it to stop. */
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
