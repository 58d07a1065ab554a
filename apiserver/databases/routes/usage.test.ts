import { expect, test } from 'vitest'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { REGION_ID } from '../../../test/builders/resources.ts'
import { startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { type Answer, codeOf } from '../../../test/support/api/http-app.ts'
import { openTemporaryJournal } from '../../../test/support/journal/temporary-journal.ts'

const NOW = new Date('2026-03-15T12:30:00Z')
const storage = { storageGiB: 10, storageItem: 'storage' }
const periods = [
  { from: '2026-02-28T23:00:00.000Z', plan: 'small', ...storage },
  { from: '2026-03-15T12:00:00.000Z', plan: 'large', ...storage, storageGiB: 50 },
]
const usageOf = ({ body }: Answer) => (body.data as { usage: object[] }).usage

async function bench() {
  await using opened = new AsyncDisposableStack()
  const { journal } = opened.use(await openTemporaryJournal())
  const api = opened.use(await startDatabaseApi({ records: journal.databases, now: () => NOW }))
  const { id } = await api.created()
  const [{ metadata } = expect.fail('no database')] = await api.stored()
  await api.store.patchStatus(DedicatedDatabase, metadata, { usagePeriods: periods })
  const all = opened.move()
  return { api, id, metadata, records: journal.databases, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

test('GET /usage sums up this month, from the journal and what is not recorded yet', async () => {
  await using b = await bench()
  const to = NOW.toISOString()
  const month = [
    { item: 'large', unit: 'hour', quantity: '0.5', from: '2026-03-15T12:00:00.000Z', to },
    { item: 'small', unit: 'hour', quantity: '348', from: '2026-03-01T00:00:00.000Z', to: '2026-03-15T12:00:00.000Z' },
    { item: 'storage', unit: 'GiB-hour', quantity: '3505', from: '2026-03-01T00:00:00.000Z', to },
  ]
  await expect.poll(async () => usageOf(await b.api.call(`GET /v1/databases/${b.id}/usage`))).toEqual(month)
  // A record takes the place of what the status says about its hour.
  const about = { database: b.id, namespace: 'acme--prod', name: 'shop', unit: 'hour' as const }
  const hour = { from: Date.parse('2026-03-15T11:00:00Z'), to: Date.parse('2026-03-15T12:00:00Z') }
  await b.records.keepUsage([{ ...about, item: 'odd', millionths: 7, ...hour }])
  const span = '?from=2026-03-15T11:30:00Z&to=2026-03-15T12:15:00Z'
  expect(usageOf(await b.api.call(`GET /v1/databases/${b.id}/usage${span}`, { as: 'vera' }))).toMatchObject([
    { item: 'large', quantity: '0.25' },
    { item: 'odd', quantity: '0.000004' },
    { item: 'storage', quantity: '12.5' },
  ])
})

test('GET /usage of a deleted database has its records, for callers of its namespace', async () => {
  await using b = await bench()
  const about = { database: b.id, namespace: 'acme--prod', name: 'shop', unit: 'hour' as const, item: 'small' }
  const hour = { from: Date.parse('2026-03-15T11:00:00Z'), to: Date.parse('2026-03-15T12:00:00Z') }
  await b.records.keepUsage([{ ...about, millionths: 1_000_000, ...hour }])
  await b.api.call(`DELETE /v1/databases/${b.id}`)
  await b.api.ends(b.id)
  const get = (path: string, as: 'erin' | 'vera' | 'olaf' = 'vera') => b.api.call(`GET ${path}`, { as })
  const sum = { item: 'small', unit: 'hour', quantity: '1', from: '2026-03-15T11:00:00.000Z', to: '2026-03-15T12:00:00.000Z' }
  expect(usageOf(await get(`/v1/databases/${b.id.toUpperCase()}/usage`))).toEqual([sum])
  expect(usageOf(await get(`/v1/databases/${b.id}/usage?from=2026-03-15T12:00:00Z`))).toEqual([])
  expect(usageOf(await get('/v1/organizations/acme/namespaces/prod/usage'))).toEqual([
    { database: { id: b.id, name: 'shop' }, ...sum },
  ])
  expect(codeOf(await get(`/v1/databases/${b.id}/usage`, 'olaf'))).toBe('404 not_found')
  expect(codeOf(await get('/v1/organizations/acme/namespaces/prod/usage', 'olaf'))).toBe('404 not_found')
  expect(codeOf(await get(`/v1/databases/${REGION_ID}/usage`))).toBe('404 not_found')
  expect(codeOf(await get('/v1/databases/x/usage'))).toBe('404 not_found')
})

test.each([
  ['from=yesterday', 'from must be a time such as 2030-01-31T12:00:00Z'],
  ['to=2026-03-15', 'to must be a time such as 2030-01-31T12:00:00Z'],
  ['from=2026-03-15T12:00:00Z&to=2026-03-15T11:00:00Z', 'to must be later than from'],
  ['from=2026-04-01T00:00:00Z', 'to must be later than from'],
  ['since=2026-03-15T12:00:00Z', 'since is not a known field; known here: from, to'],
])('GET /usage?%s names the field', async (query, message) => {
  await using b = await bench()
  for (const path of [`/v1/databases/${b.id}/usage`, '/v1/organizations/acme/namespaces/prod/usage']) {
    const answer = await b.api.call(`GET ${path}?${query}`)
    expect([codeOf(answer), answer.body.msg]).toEqual(['400 invalid_request', message])
  }
})

test('GET /usage is 503 in an installation without a journal', async () => {
  await using api = await startDatabaseApi()
  const { id } = await api.created()
  expect(codeOf(await api.call(`GET /v1/databases/${id}/usage`))).toBe('503 unavailable')
})
