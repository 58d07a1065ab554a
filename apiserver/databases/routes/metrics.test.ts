import { expect, test } from 'vitest'
import type { DatabaseSample } from '../../../journal/databases.ts'
import { startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { type Answer, codeOf } from '../../../test/support/api/http-app.ts'
import { openTemporaryJournal } from '../../../test/support/journal/temporary-journal.ts'

const NOW = new Date('2026-03-15T12:30:00Z')
const sample = (minutesAgo: number): DatabaseSample => ({
  ...{ at: NOW.getTime() - minutesAgo * 60_000, connections: minutesAgo, sizeBytes: 100, transactionsPerSecond: 2 },
  ...{ cacheHitRatio: 0.9, slowStatements: 1, backupAgeSeconds: null },
})

interface Metrics {
  readonly monitoring: boolean
  readonly from: string
  readonly to: string
  readonly latest: object | null
  readonly series: readonly { readonly at: string; readonly connections: number; readonly slowStatements: number }[]
}

test('GET /metrics merges the samples of a window to at most 200 points, and has the latest one', async () => {
  await using opened = await openTemporaryJournal()
  const records = opened.journal.databases
  await using api = await startDatabaseApi({ records, now: () => NOW })
  const { id } = await api.created({ monitoring: true })
  const minutes = Array.from({ length: 7 * 24 * 60 }, (_, index) => index + 1)
  await records.keepSamples(minutes.map((minute) => ({ database: id, ...sample(minute) })))
  const get = async (query: string) => {
    const answer: Answer = await api.call(`GET /v1/databases/${id}/metrics${query}`, { as: 'vera' })
    return (answer.body.data as { metrics: Metrics }).metrics
  }
  const hour = await get('')
  expect(hour).toMatchObject({ monitoring: true, from: '2026-03-15T11:30:00.000Z', to: '2026-03-15T12:30:00.000Z' })
  expect(hour.series).toHaveLength(60)
  expect(hour.series.at(-1)).toEqual(hour.latest)
  expect(hour.latest).toEqual({ ...sample(1), at: '2026-03-15T12:29:00.000Z' })
  const day = await get('?window=24h')
  expect(day.series).toHaveLength(144)
  expect(day.series.at(-1)).toMatchObject({ at: '2026-03-15T12:20:00.000Z', connections: 5.5, slowStatements: 10 })
  const week = await get('?window=7d')
  expect(week.series.length).toBeLessThanOrEqual(169)
  expect(week.series[0]?.at).toBe('2026-03-08T12:00:00.000Z')

  await api.call(`PATCH /v1/databases/${id}`, { body: { monitoring: null } })
  expect((await get('')).monitoring).toBe(false)
})

test('GET /metrics of a database that was never measured is empty', async () => {
  await using opened = await openTemporaryJournal()
  await using api = await startDatabaseApi({ records: opened.journal.databases })
  const { id } = await api.created()
  const { body } = await api.call(`GET /v1/databases/${id}/metrics`)
  expect(body.data).toMatchObject({ metrics: { monitoring: false, latest: null, series: [] } })
  expect(codeOf(await api.call(`GET /v1/databases/${id}/metrics?window=1y`))).toBe('400 invalid_request')
  expect(codeOf(await api.call(`GET /v1/databases/${id}/metrics`, { as: 'olaf' }))).toBe('404 not_found')
})
