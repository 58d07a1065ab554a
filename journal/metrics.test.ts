import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { SpoolState } from './spool/messages.ts'
import { createSpoolMetrics } from './metrics.ts'

const state: SpoolState = { waiting: 0, awayMs: 0, failure: '', disk: '', shipped: 0, dropped: 0, droppedEvents: 0, refused: 0 }

test('lost records are counted once, by kind, and from zero after a restart of the thread', async () => {
  const registry = new Registry()
  const { record } = createSpoolMetrics({ inMemory: () => ({ records: 0, lagMs: 0 }), diskFails: () => true, registry })
  const valuesOf = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values.map(({ value }) => value)
  record({ ...state, shipped: 10, dropped: 3, droppedEvents: 2 })
  expect(record({ ...state, shipped: 12, dropped: 4, droppedEvents: 7, refused: 1 })).toEqual({
    dropped: 1,
    droppedEvents: 5,
    refused: 1,
  })
  expect(record({ ...state, shipped: 1, droppedEvents: 1 })).toEqual({ dropped: 0, droppedEvents: 1, refused: 0 })
  expect(await valuesOf('mooring_journal_dropped_events_total')).toEqual([8])
  expect(await valuesOf('mooring_journal_dropped_records_total')).toEqual([4, 1])
  expect(await valuesOf('mooring_journal_spool_failing')).toEqual([1])
})
