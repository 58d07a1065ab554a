import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { restore } from '../../../backup/postgresql/restore.ts'
import { type ArchivedServer, startArchived } from '../../support/backup/archived-server.ts'
import {
  momentOf,
  PREFIX,
  startAgent,
  startRestored,
  type TestAgent,
  testRepository,
  type TestRepository,
  valueOf,
} from '../../support/backup/agents.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { SLOW } from '../../support/backup/quick.ts'

const { signal } = new AbortController()

describe.each(SERIES)('PostgreSQL %s', (series) => {
  let kept: TestRepository
  let server: ArchivedServer
  let agent: TestAgent
  beforeAll(async () => {
    kept = await testRepository()
    server = await startArchived(series)
    agent = startAgent(server, kept)
    await agent.archiving()
    return async () => {
      await agent.close()
      await server[Symbol.asyncDispose]()
      await kept[Symbol.asyncDispose]()
    }
  }, SLOW.timeout)

  const restored = (time: Date): Promise<ArchivedServer> => startRestored(server, { ...kept, time })

  test('a dropped table comes back by a restore to the time before', SLOW, async () => {
    const client = await server.client()
    await client.query('CREATE TABLE dropped AS SELECT generate_series(1, 2000) AS n')
    const time = await momentOf(client)
    await client.query('DROP TABLE dropped')
    const after = await momentOf(client)
    await agent.reaches(after)

    await using before = await restored(time)
    expect(await valueOf(await before.client(), 'SELECT count(*)::int FROM dropped')).toBe(2000)
    // Two restores of one backup do not disturb each other.
    await using later = await restored(after)
    expect(await valueOf(await later.client(), `SELECT to_regclass('dropped')`)).toBeNull()
    expect(await valueOf(await before.client(), 'SELECT count(*)::int FROM dropped')).toBe(2000)
  })

  test('a restore to a time between two commits has only the first', SLOW, async () => {
    const client = await server.client()
    await client.query('CREATE TABLE commits (n int)')
    await client.query('INSERT INTO commits VALUES (1)')
    const time = await momentOf(client)
    await client.query('INSERT INTO commits VALUES (2)')
    await agent.reaches(await momentOf(client))
    await using copy = await restored(time)
    expect(await valueOf(await copy.client(), 'SELECT sum(n)::int FROM commits')).toBe(1)
  })

  test.each([
    { name: 'before', time: () => new Date(Date.parse(agent.state().restoreWindow?.earliest ?? '') - 1) },
    { name: 'after', time: () => new Date(Date.now() + 3_600_000) },
  ])('a time $name the window is rejected with the window', async ({ time }) => {
    const into = join(server.root, 'rejected')
    await expect(restore({ ...kept, prefix: PREFIX, time: time(), into, signal })).rejects.toMatchObject({
      code: 'outside_restore_window',
      message: expect.stringContaining(`choose one from ${agent.state().restoreWindow?.earliest ?? ''} to `) as string,
    })
  })

  test('a database that was never backed up is rejected', async () => {
    const into = join(server.root, 'rejected')
    const result = restore({ ...kept, prefix: 'unknown', time: new Date(), into, signal })
    await expect(result).rejects.toMatchObject({
      code: 'outside_restore_window',
      message: expect.stringContaining('no complete backup') as string,
    })
  })

  test('a directory with other files is rejected, and the files stay', async () => {
    const into = join(server.root, 'others')
    await mkdir(into)
    await writeFile(join(into, 'PG_VERSION'), '15')
    const time = new Date(agent.state().restoreWindow?.latest ?? '')
    await expect(restore({ ...kept, prefix: PREFIX, time, into, signal })).rejects.toMatchObject({ code: 'directory_not_empty' })
    expect(await readdir(into)).toEqual(['PG_VERSION'])
  })
})
