import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ReconcileResult } from './controller.ts'

/** Hooks for every controller of a process, to be spread into its deps. */
export interface ControllerMetrics {
  onResult(result: ReconcileResult): void
  onDepth(controller: string, depth: number): void
}

/** Registers the metrics of controllers. Call it once per registry. */
export function createControllerMetrics(registry: Registry): ControllerMetrics {
  const registers = [registry]
  const results = new Counter({
    name: 'mooring_reconcile_total',
    help: 'Finished reconciles by result and reason.',
    labelNames: ['controller', 'result', 'reason'],
    registers,
  })
  const durations = new Histogram({
    name: 'mooring_reconcile_duration_seconds',
    help: 'Time that one reconcile took.',
    labelNames: ['controller'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  })
  const depths = new Gauge({
    name: 'mooring_queue_depth',
    help: 'Keys that are due and wait for a worker.',
    labelNames: ['controller'],
    registers,
  })

  return {
    onResult: ({ controller, result, reason, seconds }) => {
      results.inc({ controller, result, reason })
      durations.observe({ controller }, seconds)
    },
    onDepth: (controller, depth) => depths.set({ controller }, depth),
  }
}
