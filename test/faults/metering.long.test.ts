import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { createPostgresqlReader } from '../../journal/postgresql.ts'
import { createUsageRecorder } from '../../operator/metering/usage-recorder.ts'
import { serverPaths } from '../../operator/server/process/files/paths.ts'
import { dedicatedDatabase } from '../builders/dedicated.ts'
import type { Call, Database, MetricsAnswer, UsageAnswer } from '../support/api/answers.ts'
import { createDatabase, databasePath, untilGone, untilRunning } from '../support/api/databases.ts'
import { expectSuccess } from '../support/api/tenant.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { startJournalServer } from '../support/journal/journal-server.ts'
import { silent } from '../support/journal/temporary-journal.ts'
import { recordOf } from '../support/operator/process-runtime.ts'
import { settableCache } from '../support/store/caches.ts'
import { patient } from '../support/patience.ts'

/** Usage and samples of dedicated databases while processes die, a server hangs, and the journal is away. */

const PATIENCE = { timeout: 60_000, interval: 250 }
let mooring: MortalMooring
beforeAll(async () => {
  mooring = await startMortal()
})
afterAll(() => mooring[Symbol.asyncDispose]())

/** Calls the dedicated listener. */
const call: Call = (method, path, { body } = {}) =>
  mooring.call(method, new URL(path, mooring.living().ready.dedicatedUrl).href, { body })
const usageOf = async ({ id }: Database): Promise<readonly UsageAnswer[]> =>
  (await expectSuccess(call('GET', `/v1/databases/${id}/usage`))).body.data.usage
const metricsOf = async ({ id }: Database): Promise<MetricsAnswer> =>
  (await expectSuccess(call('GET', `/v1/databases/${id}/metrics`))).body.data.metrics

async function created(name: string): Promise<Database> {
  const { region } = mooring.living().ready
  const made = await createDatabase(call, { name, engine: 'postgresql-15.4.0', region, plan: 'small', monitoring: true })
  return untilRunning(call, made)
}

async function killAndStart(): Promise<void> {
  const child = mooring.living().process
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  await mooring.start()
}

test(
  'usage counts the time for which no operator ran, and samples go on after kill -9',
  { timeout: patient(240_000) },
  async () => {
    const database = await created('killed')
    await expect.poll(async () => (await metricsOf(database)).latest?.transactionsPerSecond, PATIENCE).toEqual(expect.any(Number))
    const before = await metricsOf(database)
    const text = await (await fetch(mooring.living().ready.metricsUrl)).text()
    expect(text).toMatch(/^mooring_database_connections\{namespace="default--default",database="killed"\} \d+$/m)
    const [first] = await usageOf(database)
    await killAndStart()
    const [second] = await usageOf(database)
    expect(second).toMatchObject({ item: 'small', from: first?.from })
    const hours = (Date.parse(String(second?.to)) - Date.parse(String(second?.from))) / 3_600_000
    expect(Number(second?.quantity)).toBeCloseTo(hours, 5)
    const isLater = async () => String((await metricsOf(database)).latest?.at) > String(before.latest?.at)
    await expect.poll(isLater, PATIENCE).toBe(true)
    expect((await metricsOf(database)).series[0]?.at).toBe(before.series[0]?.at)
  },
)

test.each(['database.record-usage', 'database.forget-secret'])(
  'the usage of a deletion that is killed at %s is recorded once',
  { timeout: 240_000 },
  async (step) => {
    const database = await created(step.replaceAll('.', '-'))
    // The time of a deletion is rounded down to a whole second: within the second of the creation there is no use to record.
    const usedMs = async () => (await usageOf(database)).map(({ from, to }) => Date.parse(to) - Date.parse(from))[0]
    await expect.poll(usedMs, PATIENCE).toBeGreaterThan(1_000)
    let killed = 0
    await mooring.dieAt(step, () => call('DELETE', databasePath(database)).finally(() => (killed = Date.now())))
    await untilGone(call, database)
    const [hours] = await usageOf(database)
    expect(hours).toMatchObject({ item: 'small', unit: 'hour' })
    // The time without an operator, and the restart, are not counted.
    expect(Date.parse(String(hours?.to))).toBeLessThanOrEqual(killed)
    const ms = Date.parse(String(hours?.to)) - Date.parse(String(hours?.from))
    expect(Number(hours?.quantity)).toBeCloseTo(ms / 3_600_000, 5)
  },
)

/** Returns the pids of the database servers of Mooring. */
async function serverPids(): Promise<readonly number[]> {
  const directory = join(mooring.dataDir, 'servers')
  const entries = await readdir(directory, { withFileTypes: true })
  const records = entries.map(({ name }) => recordOf(serverPaths(directory, name)).catch(() => undefined))
  return (await Promise.all(records)).flatMap((record) => record?.process.pid ?? [])
}

/** Stops a process, then its children: a stopped parent makes and reaps none. Returns all of them. */
async function stopWithChildren(pid: number): Promise<readonly number[]> {
  process.kill(pid, 'SIGSTOP')
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number)
  for (const child of children) process.kill(child, 'SIGSTOP')
  return [...children, pid]
}

test(
  'a server that hangs has no samples, and delays neither those of others nor a reconcile',
  { timeout: patient(240_000) },
  async () => {
    const known = await serverPids()
    const hung = await created('hung')
    const pids = (await serverPids()).filter((pid) => !known.includes(pid))
    expect(pids).toHaveLength(1)
    await expect.poll(async () => (await metricsOf(hung)).latest, PATIENCE).not.toBeNull()
    const family = (await Promise.all(pids.map(stopWithChildren))).flat()
    try {
      const other = await created('other')
      await expect.poll(async () => (await metricsOf(other)).latest?.transactionsPerSecond, PATIENCE).toEqual(expect.any(Number))
    } finally {
      for (const pid of family) process.kill(pid, 'SIGCONT')
    }
    const { at } = (await metricsOf(hung)).latest ?? { at: '' }
    await expect.poll(async () => String((await metricsOf(hung)).latest?.at) > at, PATIENCE).toBe(true)
  },
)

test('usage that a journal in PostgreSQL could not take is recorded once it is back', { timeout: patient(240_000) }, async () => {
  await using parts = new AsyncDisposableStack()
  const { server, logins } = parts.use(await startJournalServer())
  const { databases: records } = parts.use(createPostgresqlReader({ login: () => Promise.resolve(logins.owner), log: silent }))
  const period = { from: '2026-03-01T08:30:00.000Z', plan: 'small', storageGiB: 10, storageItem: 'storage' }
  const database = dedicatedDatabase({
    metadata: { deletionTimestamp: '2026-03-01T09:45:00Z' },
    status: { usagePeriods: [period] },
  })
  const recorder = createUsageRecorder({
    ...{ databases: settableCache(DedicatedDatabase).cache, records, now: () => new Date('2026-03-01T09:45:01Z') },
    log: silent,
  })
  const crashed = server.crash()
  await Promise.allSettled([recorder.finish(database), crashed])
  await vi.waitFor(() => recorder.finish(database), PATIENCE)
  const span = { from: 0, to: Date.now() }
  const sums = await records.usage({ database: database.metadata.uid, ...span })
  expect(sums.map(({ item, millionths }) => [item, millionths])).toEqual([
    ['small', 1_250_000],
    ['storage', 12_500_000],
  ])
})
