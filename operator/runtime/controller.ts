import type { Logger } from 'pino'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { MooringError } from '../../shared/errors.ts'
import { type Backoff, type Clock, systemClock, whenAborted } from '../../shared/timers.ts'
import { StoreCode, keyFromString, keyToString, type Key } from '../../store/port.ts'
import { createQueue } from './queue.ts'
import type { Source } from './source.ts'

/** Result of a reconcile. `waiting`: another event must happen first, which `reason` names. */
export interface Outcome {
  readonly result: 'settled' | 'waiting'
  /** Documented reason of a condition, in CamelCase. */
  readonly reason: string
  /** Time after which the object is reconciled again even without a change. */
  readonly requeueAfterMs?: number | undefined
}

/** Finished reconcile. For `failed`, `reason` is the error's code, or `unexpected` for an error that is not a MooringError. */
export interface ReconcileResult {
  readonly controller: string
  readonly result: Outcome['result'] | 'failed'
  readonly reason: string
  readonly seconds: number
}

export interface ControllerDeps {
  readonly name: string
  readonly concurrency: number
  /**
   * Reconciles one object, given by its key alone, whether it exists or not. A throw repeats it after a back-off. The signal aborts when
   * the controller stops: the function then finishes the current step and starts no other.
   */
  readonly reconcile: (key: Key, signal: AbortSignal) => Promise<Outcome>
  readonly sources: readonly Source[]
  readonly log: Pick<Logger, 'debug' | 'warn' | 'error'>
  /** Group of a key; groups take turns. Default: the namespace. */
  readonly group?: (key: Key) => string
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
  readonly onResult?: (result: ReconcileResult) => void
  /** Receives the error of a failed reconcile after it was logged. */
  readonly onFailure?: ((key: Key, error: unknown) => void) | undefined
  readonly onDepth?: (controller: string, depth: number) => void
}

/** Controller that reconciles every object once when its sources have synced, and then each key that a source names. */
export interface Controller {
  readonly name: string
  /** Runs until `signal` aborts; resolves when the reconciles under way have ended. Rejects only when a source does. Call it once. */
  run(signal: AbortSignal): Promise<void>
}

export function createController(deps: ControllerDeps): Controller {
  const { name, sources, log, clock = systemClock } = deps
  const groupOf = deps.group ?? (({ namespace = '' }: Key) => namespace)

  async function work(text: string, signal: AbortSignal): Promise<Outcome> {
    const started = clock.now()
    const report = (result: ReconcileResult['result'], reason: string) => {
      deps.onResult?.({ controller: name, result, reason, seconds: (clock.now() - started) / 1000 })
    }
    try {
      const outcome = await deps.reconcile(keyFromString(text), signal)
      report(outcome.result, outcome.reason)
      return outcome
    } catch (error) {
      // A reconcile that a stop interrupted has not failed: the first pass of the next start repeats it.
      if (!signal.aborted) {
        report('failed', codeOf(error))
        logFailure(text, error)
        deps.onFailure?.(keyFromString(text), error)
      }
      throw error
    }
  }

  function logFailure(key: string, error: unknown): void {
    const fields = { controller: name, key, code: codeOf(error) }
    if (fields.code === StoreCode.conflict) log.debug(fields, 'another writer was quicker')
    else if (error instanceof MooringError) log.warn({ ...fields, reason: error.message }, 'reconcile failed')
    // Only name and stack: other fields of a foreign error may hold its input, a password included.
    else log.error({ ...fields, stack: error instanceof Error ? error.stack : String(error) }, 'reconcile failed')
  }

  async function run(signal: AbortSignal): Promise<void> {
    await Promise.race([whenAborted(signal), Promise.all(sources.map((source) => source.synced()))])
    if (signal.aborted) return
    await using queue = createQueue({
      ...deps,
      work,
      group: (text) => groupOf(keyFromString(text)),
      onDepth: (depth) => deps.onDepth?.(name, depth),
    })
    const enqueue = (key: Key) => {
      queue.add(keyToString(key))
    }
    // Subscribed before the first pass and in the same turn of the event loop, so that no change is missed.
    const unsubscribe = sources.map((source) => source.subscribe(enqueue))
    for (const source of sources) source.initial().forEach(enqueue)
    await whenAborted(signal)
    for (const stop of unsubscribe) stop()
  }

  return { name, run }
}

function codeOf(error: unknown): string {
  return error instanceof MooringError ? error.code : 'unexpected'
}

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
