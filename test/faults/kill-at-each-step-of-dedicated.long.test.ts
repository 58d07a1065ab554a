// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Answer, Call, Database } from '../support/api/answers.ts'
import { asInstance, createDatabase, databasePath, untilGone, untilRunning } from '../support/api/databases.ts'
import { expectSuccess } from '../support/api/tenant.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { mainProcesses, openStateOf } from '../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

/** Kills Mooring (SIGKILL) at each step of a dedicated database, and starts it again: each change ends as if nothing had happened. */

const ENGINE = 'postgresql-15.4.0'
const LONG = 300_000
let mooring: MortalMooring
/** Each test has at most one database, so that a server that is left over shows. */
beforeAll(async () => {
  mooring = await startMortal()
})
afterAll(() => mooring[Symbol.asyncDispose]())

const call: Call = (method, path, { body } = {}) =>
  mooring.call(method, new URL(path, mooring.living().ready.dedicatedUrl).href, { body })
const create = (name: string) =>
  createDatabase(call, { name, engine: ENGINE, region: mooring.living().ready.region, plan: 'small' })

async function listed(): Promise<readonly Database[]> {
  return (await expectSuccess(call('GET', '/v1/databases'))).body.data.databases
}

/** Expects as many dedicated servers, and one process for each server, that of shared databases included. */
async function expectServers(dedicated: number): Promise<void> {
  await expect
    .poll(async () => {
      await using state = await openStateOf(mooring.dataDir)
      const { items } = await state.store.list(DatabaseServer)
      const processes = await mainProcesses(mooring.dataDir)
      return { dedicated: items.filter(({ spec }) => spec.size).length, without: items.length - processes.length }
    }, LATER)
    .toEqual({ dedicated, without: 0 })
}

/** Returns the one database once it runs, and expects its connection to work and its server to be the only one. */
async function expectWhole(): Promise<Database> {
  const [database, ...others] = await listed()
  expect(others).toEqual([])
  const running = await untilRunning(call, database ?? expect.fail('the database is lost'))
  expect(await query(asInstance(running), 'SELECT current_user AS me')).toEqual([{ me: running.connection?.user }])
  await expectServers(1)
  return running
}

/** Deletes the database, and expects that nothing of it is left. */
async function remove(database: Database, kill?: string): Promise<void> {
  const ask = (): Promise<Answer> => call('DELETE', databasePath(database))
  await (kill === undefined ? ask() : mooring.dieAt(kill, ask))
  await untilGone(call, database)
  await expect(query(asInstance(database), 'SELECT 1')).rejects.toThrow()
  await expectServers(0)
}

/** A running database, changed by a request that is killed at a step. */
async function changedAt(step: string, change: (database: Database) => Promise<Answer>): Promise<readonly [Database, Database]> {
  await create(step.replaceAll('.', '-'))
  const before = await expectWhole()
  await query(asInstance(before), 'CREATE TABLE kept AS SELECT 7 AS n')
  await mooring.dieAt(step, () => change(before))
  const after = await expectWhole()
  expect(await query(asInstance(after), 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  return [before, after]
}

const CREATION = ['server', 'secret', 'claim', 'admit', 'verify', 'status']
test.each(CREATION.map((step) => `database.${step}`))(
  'a creation finishes without help after kill -9 at %s',
  async (step) => {
    await mooring.dieAt(step, () =>
      call('POST', '/v1/databases', {
        body: { name: step.replaceAll('.', '-'), engine: ENGINE, region: mooring.living().ready.region, plan: 'small' },
      }),
    )
    await remove(await expectWhole())
  },
  LONG,
)

test.each(['database.usage', 'database.server', 'database.claim', 'database.admit', 'database.status'])(
  'a change of plan is in force, and loses no data, after kill -9 at %s',
  async (step) => {
    const [, after] = await changedAt(step, (database) => call('PATCH', databasePath(database), { body: { plan: 'medium' } }))
    expect(after.plan).toBe('medium')
    await remove(after)
  },
  LONG,
)

test.each(['database.renew-secret', 'database.password', 'database.verify', 'database.status'])(
  'a rotation ends with one new password after kill -9 at %s',
  async (step) => {
    const [before, after] = await changedAt(step, (database) => call('POST', `${databasePath(database)}/password`))
    expect(after.connection?.password).not.toBe(before.connection?.password)
    await expect(query(asInstance(before), 'SELECT 1')).rejects.toThrow()
    await remove(after)
  },
  LONG,
)

test.each(['database.delete-server', 'database.release'])(
  'a deletion leaves nothing after kill -9 at %s',
  async (step) => {
    await create(step.replaceAll('.', '-'))
    await remove(await expectWhole(), step)
  },
  LONG,
)
