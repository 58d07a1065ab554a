import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'

/** Each time wakes the process: twenty times a second cost one at rest a thousandth of a core, which is a tenth of all it may use. */
const RESOLUTION_MS = 250
const QUANTILES = [0.5, 0.99, 1]

/** Registers how late timers fire in this process (surface, section 7). Once a registry. Dispose of it to stop. */
export function watchEventLoop(registry: Registry): Disposable {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  new Gauge({
    name: 'mooring_event_loop_delay_seconds',
    help: 'How late timers of the event loop fired since the last scrape.',
    labelNames: ['quantile'],
    registers: [registry],
    collect() {
      for (const quantile of QUANTILES) {
        const lateMs = delay.percentile(quantile * 100) / 1e6 - RESOLUTION_MS
        this.set({ quantile }, Math.max(0, lateMs) / 1e3)
      }
      delay.reset()
    },
  })
  return { [Symbol.dispose]: () => delay.disable() }
}
