import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import { StoreError, keyToString, type Key } from '../../store/port.ts'
import { startCache, createScriptedStore } from '../../test/support/store/caches.ts'
import { createVirtualClock, settle } from '../../test/support/clocks.ts'
import {
  type ControllerDeps,
  createController,
  type Outcome,
  type ReconcileResult,
  createControllerMetrics,
} from './controller.ts'
import { changesOf, eventsOf, objectsOf, type Source } from './source.ts'

const settled: Outcome = { result: 'settled', reason: 'Fine' }

/** Controller in virtual time that runs until disposed, with a record of its calls. */
function start(sources: readonly Source[], options: Partial<ControllerDeps> = {}) {
  const clock = createVirtualClock()
  const reconciled: string[] = []
  const results: ReconcileResult[] = []
  const lines: { level: string; fields: object }[] = []
  const write = (level: string) => (fields: object) => {
    lines.push({ level, fields })
  }
  const { reconcile = () => Promise.resolve(settled), ...rest } = options
  const controller = createController({
    name: 'test',
    concurrency: 2,
    sources,
    log: { debug: write('debug'), warn: write('warn'), error: write('error') } as ControllerDeps['log'],
    clock,
    random: () => 1,
    onResult: (result) => results.push(result),
    ...rest,
    reconcile: (key, signal) => {
      reconciled.push(keyToString(key))
      return reconcile(key, signal)
    },
  })
  const stop = new AbortController()
  const ended = controller.run(stop.signal)
  const dispose = async () => {
    stop.abort()
    await ended
  }
  return { clock, reconciled, results, lines, stop, ended, [Symbol.asyncDispose]: dispose }
}

/** Source with one initial key. */
function once(key: Key): Source {
  return { synced: () => Promise.resolve(), initial: () => [key], subscribe: () => () => undefined }
}

test('reconciles every object once at first, and then each that changes', async () => {
  const scripted = createScriptedStore()
  scripted.put('a')
  scripted.put('b')
  await using running = startCache(scripted.store)
  await using controller = start([objectsOf(running.cache)])
  await settle()
  expect(controller.reconciled).toEqual(['a', 'b'])
  scripted.put('b')
  scripted.remove('a')
  await settle()
  expect(controller.reconciled).toEqual(['a', 'b', 'b', 'a'])
})

test('does nothing before all of its sources have synced', async () => {
  const sync = Promise.withResolvers<undefined>()
  await using controller = start([once({ name: 'a' }), { ...once({ name: 'b' }), synced: () => sync.promise }])
  await settle()
  expect(controller.reconciled).toEqual([])
  sync.resolve(undefined)
  await settle()
  expect(controller.reconciled).toEqual(['a', 'b'])
})

test('a change of another kind reconciles the objects that it concerns', async () => {
  const scripted = createScriptedStore()
  scripted.put('server')
  await using running = startCache(scripted.store)
  const concerned = ({ name }: Key) => [{ namespace: 'x', name: `on-${name}` }]
  let fire: (key: Key) => void = () => undefined
  const events = eventsOf((enqueue) => {
    fire = enqueue
    return () => undefined
  })
  await using controller = start([changesOf(running.cache, concerned), events])
  await settle()
  expect(controller.reconciled).toEqual([])
  scripted.put('server')
  await settle()
  fire({ name: 'event' })
  expect(controller.reconciled).toEqual(['x/on-server', 'event'])
})

test('reports outcomes, and reconciles again when the outcome requests it', async () => {
  const outcomes: Outcome[] = [{ result: 'waiting', reason: 'WaitingForServer', requeueAfterMs: 500 }, settled]
  await using controller = start([once({ name: 'a' })], { reconcile: () => Promise.resolve(outcomes.shift() ?? settled) })
  await controller.clock.advance(10_000)
  expect(controller.results).toEqual([
    { controller: 'test', result: 'waiting', reason: 'WaitingForServer', seconds: 0 },
    { controller: 'test', result: 'settled', reason: 'Fine', seconds: 0 },
  ])
})

test.each([
  { does: 'a conflict only at debug level', error: new StoreError('conflict', 'stale'), level: 'debug', code: 'conflict' },
  {
    does: 'an error of Mooring as a warning',
    error: new MooringError('engine_unavailable', 'no'),
    level: 'warn',
    code: 'engine_unavailable',
  },
  { does: 'a bug as an error', error: new RangeError('oops'), level: 'error', code: 'unexpected' },
])('logs $does, with its code, and tries again', async ({ error, level, code }) => {
  const errors = [error]
  const reconcile = () => {
    const next = errors.shift()
    return next ? Promise.reject(next) : Promise.resolve(settled)
  }
  await using controller = start([once({ namespace: 'x', name: 'a' })], { reconcile })
  await controller.clock.advance(10_000)
  expect(controller.lines).toMatchObject([{ level, fields: { controller: 'test', key: 'x/a', code } }])
  expect(controller.results.map(({ result, reason }) => [result, reason])).toEqual([
    ['failed', code],
    ['settled', 'Fine'],
  ])
})

test('the fields of a foreign error are not logged, for they may hold a password', async () => {
  const error = Object.assign(new Error('syntax error'), { internalQuery: "ALTER ROLE x PASSWORD 'hunter2'" })
  await using controller = start([once({ name: 'a' })], { reconcile: () => Promise.reject(error) })
  await settle()
  expect(controller.lines).toHaveLength(1)
  expect(JSON.stringify(controller.lines)).not.toContain('hunter2')
})

test('a stop lets running reconciles end and reports no interrupted ones', async () => {
  const reconcile = (_: Key, signal: AbortSignal) =>
    new Promise<Outcome>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reject(new Error('stopped'))
      })
    })
  const controller = start([once({ name: 'a' })], { reconcile })
  await settle()
  controller.stop.abort()
  await controller.ended
  expect(controller).toMatchObject({ reconciled: ['a'], lines: [], results: [] })
})

test('a stop before the sources have synced ends it too', async () => {
  const controller = start([{ ...once({ name: 'a' }), synced: () => new Promise(() => undefined) }])
  controller.stop.abort()
  await expect(controller.ended).resolves.toBeUndefined()
})

test('its metrics count results, durations and depth by controller', async () => {
  const registry = new Registry()
  const metrics = createControllerMetrics(registry)
  await using controller = start([once({ name: 'a' })], metrics)
  await settle()
  expect(controller.reconciled).toEqual(['a'])
  const text = await registry.metrics()
  expect(text).toContain('mooring_reconcile_total{controller="test",result="settled",reason="Fine"} 1')
  expect(text).toContain('mooring_reconcile_duration_seconds_count{controller="test"} 1')
  expect(text).toContain('mooring_queue_depth{controller="test"} 0')
})
