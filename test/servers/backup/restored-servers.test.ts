import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { readManifest, writeManifest } from '../../../backup/postgresql/catalog/manifest.ts'
import { readText } from '../../../backup/postgresql/catalog/read-object.ts'
import { restore } from '../../../backup/postgresql/restore.ts'
import { bodyOf } from '../../../backup/repository/small-objects.ts'
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

describe.each(SERIES)('a restore of PostgreSQL %s', (series) => {
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

  test('a time to which nothing was committed after the last mark is restorable', SLOW, async () => {
    const client = await server.client()
    await client.query('CREATE TABLE quiet AS SELECT 1 AS n')
    await agent.reaches(await momentOf(client))
    // No more commits from here on.
    const time = await momentOf(client)
    await agent.reaches(time)
    await using copy = await restored(time)
    expect(await valueOf(await copy.client(), 'SELECT n FROM quiet')).toBe(1)
  })

  test('a restored server is archived on its own, and restored again', SLOW, async () => {
    const client = await server.client()
    await client.query('CREATE TABLE generations AS SELECT 1 AS n')
    const time = await momentOf(client)
    await agent.reaches(time)
    await using second = await restored(time)
    await using other = startAgent(second, { ...kept, prefix: 'database-2' })
    await other.archiving()
    const inSecond = await second.client()
    await inSecond.query('UPDATE generations SET n = 2')
    const later = await momentOf(inSecond)
    await inSecond.query('UPDATE generations SET n = 3')
    await other.reaches(await momentOf(inSecond))
    await using third = await startRestored(second, { ...kept, prefix: 'database-2', time: later })
    expect(await valueOf(await third.client(), 'SELECT n FROM generations')).toBe(2)
    // The former server's backups are as before.
    await using again = await restored(time)
    expect(await valueOf(await again.client(), 'SELECT n FROM generations')).toBe(1)
  })

  test('a backup that is larger than the free space is rejected before anything is fetched', SLOW, async () => {
    const into = join(server.root, 'too-small')
    const time = new Date(agent.state().restoreWindow?.latest ?? '')
    const deps = { ...kept, prefix: PREFIX, signal }
    await using large = await testRepository()
    for await (const { key } of kept.repository.list(`${PREFIX}/`)) {
      const text = key.endsWith('/manifest.json') ? await readText(deps, key.slice(PREFIX.length + 1)) : undefined
      const manifest = text === undefined ? undefined : readManifest(text)
      const body = manifest
        ? bodyOf(Buffer.from(writeManifest({ ...manifest, dataBytes: 2 ** 50 })))
        : await kept.repository.get(key)
      await large.repository.put(key, body)
    }
    const result = restore({ ...deps, repository: large.repository, time, into })
    await expect(result).rejects.toMatchObject({ code: 'restore_needs_space' })
    expect(await readdir(into)).toEqual(['mooring_restore.json'])
  })

  test('a repeated restore changes nothing', SLOW, async () => {
    const into = join(server.root, 'repeated')
    const time = new Date(agent.state().restoreWindow?.latest ?? '')
    const first = await restore({ ...kept, prefix: PREFIX, time, into, signal })
    await writeFile(join(into, 'of-the-server'), '')
    expect(await restore({ ...kept, prefix: PREFIX, time, into, signal })).toEqual(first)
    expect(await readdir(into)).toContain('of-the-server')
  })
})
