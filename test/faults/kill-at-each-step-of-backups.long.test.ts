// Its tests build on each other:
// @module-tag whole-file
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Answer, Database } from '../support/api/answers.ts'
import { asInstance } from '../support/api/databases.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { clientOf } from '../support/families/family-client.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

/** Kills embedded Mooring (SIGKILL) at each step of databases with backups, and starts it again. */

const TEST_MS = 400_000
const client = clientOf('postgresql-15.4.0')

let mooring: MortalMooring
let source: Database
let moment: string
beforeAll(async () => {
  mooring = await startMortal({ args: ['--quota-databases', '100'] })
  const made = (await create('source', { pointInTimeRecovery: { retentionDays: 1 } })).body.data.database
  source = await untilRunning(made)
  await untilWindow(source, 0)
  await client.add(asInstance(source), 'kept')
  moment = await nowOf(source)
  await untilWindow(source, Date.parse(moment))
}, TEST_MS)
afterAll(() => mooring[Symbol.asyncDispose](), LATER.timeout)

const call: MortalMooring['call'] = (method, path, options) =>
  mooring.call(method, new URL(path, mooring.living().ready.dedicatedUrl).href, options)
const pathOf = ({ id }: Pick<Database, 'id'>) => `/v1/databases/${id}`
const windowIn = (answer: Answer) => answer.body.data.database.restoreWindow

function create(name: string, more: object = {}): Promise<Answer> {
  const body = { name, engine: 'postgresql-15.4.0', region: mooring.living().ready.region, plan: 'small', ...more }
  return call('POST', '/v1/databases', { body, headers: { 'Idempotency-Key': name } })
}

async function untilRunning(database: Pick<Database, 'id'>): Promise<Database> {
  return vi.waitFor(async () => {
    const now = (await call('GET', pathOf(database))).body.data.database
    if (now.status !== 'running') throw new Error(`the database is ${now.status}: ${String(now.statusReason)}`)
    return now
  }, LATER)
}

async function untilWindow(database: Pick<Database, 'id'>, at: number): Promise<void> {
  const latest = async () => Date.parse(windowIn(await call('GET', pathOf(database)))?.latest ?? '')
  await vi.waitFor(async () => expect(await latest()).toBeGreaterThanOrEqual(at), LATER)
}

async function nowOf(database: Database): Promise<string> {
  const [row] = await query(asInstance(database), 'SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
  return new Date(Math.ceil(Number(row?.now))).toISOString()
}

const untilGone = (database: Pick<Database, 'id'>): Promise<void> =>
  vi.waitFor(async () => expect((await call('GET', pathOf(database))).status).toBe(404), LATER)

/** Removes a database, whose server would take part in each further restart. */
async function remove(database: Pick<Database, 'id'>): Promise<void> {
  await call('DELETE', pathOf(database))
  await untilGone(database)
}

/** Uids of the databases with objects in the repository. */
const stored = () => readdir(join(mooring.dataDir, 'backups'))

test.each(['database.archive', 'archive.order', 'database.server', 'database.claim', 'database.status'])(
  'a database with point-in-time recovery is created and backed up after kill -9 at %s',
  async (step) => {
    const name = step.replace('.', '-')
    const add = () => create(name, { pointInTimeRecovery: { retentionDays: 1 } })
    await mooring.dieAt(step, add)
    const database = await untilRunning((await add()).body.data.database)
    await untilWindow(database, 0)
    expect(await stored()).toContain(database.id)
    expect(await client.user(asInstance(database))).toBe(database.connection?.user)
    await remove(database)
  },
  TEST_MS,
)

test.each(['restore.files', 'restore.recovered', 'database.secret', 'database.adopt', 'database.claim', 'database.verify'])(
  'a restore finishes without help after kill -9 at %s',
  async (step) => {
    const name = `from-${step.replace('.', '-')}`
    const restore = () => create(name, { restoreFrom: { databaseId: source.id, time: moment } })
    await mooring.dieAt(step, restore)
    const database = await untilRunning((await restore()).body.data.database)
    expect(await client.items(asInstance(database))).toEqual(['kept'])
    expect(database.connection?.database).not.toBe(source.connection?.database)
    await remove(database)
  },
  TEST_MS,
)

test.each(['database.delete-server', 'database.delete-archive', 'archive.remove-objects', 'archive.release', 'database.release'])(
  'a deletion removes the backups without help after kill -9 at %s',
  async (step) => {
    const name = `end-${step.replace('.', '-')}`
    const database = await untilRunning((await create(name, { pointInTimeRecovery: { retentionDays: 1 } })).body.data.database)
    await untilWindow(database, 0)
    await mooring.dieAt(step, () => call('DELETE', pathOf(database)))
    await untilGone(database)
    expect(await stored()).not.toContain(database.id)
  },
  TEST_MS,
)

test(
  'kept backups stay, and are restored, after kill -9 at database.keep-archive',
  async () => {
    const database = await untilRunning((await create('kept', { pointInTimeRecovery: { retentionDays: 1 } })).body.data.database)
    await untilWindow(database, 0)
    const { latest = '' } = windowIn(await call('GET', pathOf(database))) ?? {}
    await mooring.dieAt('database.keep-archive', () => call('DELETE', `${pathOf(database)}?keepBackups=true`))
    await untilGone(database)
    expect(await stored()).toContain(database.id)
    const again = await create('kept-again', { restoreFrom: { databaseId: database.id, time: latest } })
    expect((await untilRunning(again.body.data.database)).status).toBe('running')
  },
  TEST_MS,
)
