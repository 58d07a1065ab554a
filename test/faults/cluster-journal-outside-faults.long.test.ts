import { afterAll, beforeAll, expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { JournalLogin } from '../../journal/postgresql.ts'
import { expectToWork, type JournalPostgres, type Logged, startJournalPostgres } from '../support/deployment/cluster-journal.ts'
import { patient } from '../support/patience.ts'

let postgres: JournalPostgres

beforeAll(async () => {
  postgres = await startJournalPostgres(['outside', 'another', 'third', 'narrow', 'shared'])
})
afterAll(() => postgres[Symbol.asyncDispose]())

test(
  'on an outside PostgreSQL roles are created if the login may do so, otherwise all users share the login',
  { timeout: patient(240_000) },
  async () => {
    const [outside, narrow] = [await databaseOutside('outside', 'CREATEROLE'), await databaseOutside('narrow', 'NOCREATEROLE')]
    {
      await using running = await postgres.start(outside)
      await expectToWork(running)
      expect(new URL((await running.loginOf('edge')).uri).username).toMatch(/^mooring_journal_edge_[0-9a-f]{12}$/)
    }
    await using running = await postgres.start(narrow)
    await expectToWork(running)
    expect(await running.loginOf('edge')).toEqual(narrow)
  },
)

test(
  'two installations can use two databases of one PostgreSQL; in one database the second is rejected',
  { timeout: patient(240_000) },
  async () => {
    const [one, another] = [await databaseOutside('another', 'CREATEROLE'), await databaseOutside('third', 'CREATEROLE')]
    const lines: Logged[] = []
    await using first = await postgres.start(one)
    await expectToWork(first)
    await using second = await postgres.start(another)
    await expectToWork(second)
    await expectToWork(first)
    await using third = await postgres.start(one, lines)
    await expect.poll(() => lines.map(({ details }) => details)).toMatchObject([{ err: { code: 'journal_taken' } }])
    await expect(third.journal.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
    await expectToWork(first)
  },
)

test(
  'an installation whose database is rejected creates no Secret with a login to it',
  { timeout: patient(240_000) },
  async () => {
    const login = await databaseOutside('shared', 'NOCREATEROLE')
    await using first = await postgres.start(login)
    await expectToWork(first)
    const lines: Logged[] = []
    await using second = await postgres.start(login, lines)
    await expect.poll(() => lines.map(({ details }) => details)).toMatchObject([{ err: { code: 'journal_taken' } }])
    for (const user of ['owner', 'edge', 'reader'])
      expect(await second.store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: `journal-${user}` })).toBeUndefined()
  },
)

/** Database on an outside PostgreSQL, whose owner may or may not create roles. */
async function databaseOutside(database: string, may: 'CREATEROLE' | 'NOCREATEROLE'): Promise<JournalLogin> {
  const { server, certificate } = postgres
  const admin = await server.client()
  await admin.query(`CREATE ROLE ${database}_owner LOGIN ${may} PASSWORD 'of-the-outside'`)
  await admin.query(`CREATE DATABASE ${database} OWNER ${database}_owner`)
  const { host, port } = server.target
  return { uri: `postgresql://${database}_owner:of-the-outside@${host}:${port}/${database}`, ca: certificate.ca }
}
