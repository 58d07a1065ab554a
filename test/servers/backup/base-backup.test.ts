import { execFile } from 'node:child_process'
import { link, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { restore } from '../../../backup/postgresql/restore.ts'
import { momentOf, PREFIX, startAgent, startRestored, testRepository, valueOf } from '../../support/backup/agents.ts'
import { startArchived } from '../../support/backup/archived-server.ts'
import { PATIENCE, SLOW } from '../../support/backup/quick.ts'
import { ADMIN, SERIES } from '../../support/postgresql/postgres.ts'

const run = promisify(execFile)
const { signal } = new AbortController()

describe.each(SERIES)('a base backup of PostgreSQL %s', (series) => {
  test('is made under load, with all kinds of data', SLOW, async () => {
    await using kept = await testRepository()
    await using server = await startArchived(series)
    const client = await server.client()
    const { port } = client
    const pgbench = (args: readonly string[]): Promise<unknown> =>
      run('pgbench', ['-h', '127.0.0.1', '-p', `${port}`, '-U', ADMIN.user, ...args, 'postgres'], {
        env: { ...process.env, PGPASSWORD: ADMIN.password },
      })
    await pgbench(['-i', '-q', '-s', '2'])
    await client.query('CREATE UNLOGGED TABLE unlogged AS SELECT generate_series(1, 1000) AS n')
    await client.query(`CREATE TABLE large AS SELECT lo_from_bytea(0, decode(repeat('ab', 100000), 'hex')) AS object`)
    await client.query(`CREATE TABLE wide AS SELECT string_agg(md5(n::text), '') AS text FROM generate_series(1, 20000) n`)
    await client.query('CREATE DATABASE second')
    const load = pgbench(['-c', '4', '-t', '200', '-n'])
    await using agent = startAgent(server, kept)
    await agent.archiving()
    await load
    const sums = 'SELECT sum(abalance)::int FROM pgbench_accounts'
    const expected = await valueOf(client, sums)
    const history = await valueOf(client, 'SELECT count(*)::int FROM pgbench_history')
    const time = await momentOf(client)
    await agent.reaches(time)

    await using copy = await startRestored(server, { ...kept, time })
    const inCopy = await copy.client()
    expect(await valueOf(inCopy, sums)).toBe(expected)
    expect(await valueOf(inCopy, 'SELECT sum(delta)::int FROM pgbench_history')).toBe(expected)
    expect(await valueOf(inCopy, 'SELECT count(*)::int FROM pgbench_history')).toBe(history)
    // As after a crash (PostgreSQL, "CREATE TABLE", UNLOGGED).
    expect(await valueOf(inCopy, 'SELECT count(*)::int FROM unlogged')).toBe(0)
    expect(await valueOf(inCopy, 'SELECT length(lo_get(object)) FROM large')).toBe(100_000)
    expect(await valueOf(inCopy, 'SELECT md5(text) FROM wide')).toBe(await valueOf(client, 'SELECT md5(text) FROM wide'))
    await copy.client('second')
  })

  test('follows no link, and says that it has no tablespaces', SLOW, async () => {
    await using kept = await testRepository()
    await using server = await startArchived(series)
    const { dataDirectory } = server.files
    const secret = join(server.root, 'secret')
    await writeFile(secret, 'a secret of another user', { mode: 0o600 })
    await symlink(secret, join(dataDirectory, 'base/1/99999'))
    await symlink(server.root, join(dataDirectory, 'pg_tblspc/99999'))
    await link(secret, join(dataDirectory, 'base/1/99998'))
    await using agent = startAgent(server, kept)
    await agent.archiving()
    const into = join(server.root, 'into')
    await restore({ ...kept, prefix: PREFIX, time: new Date(agent.state().restoreWindow?.latest ?? ''), into, signal })
    expect(await readdir(join(into, 'base/1'))).not.toEqual(expect.arrayContaining([expect.stringMatching(/^9999[89]$/)]))
    expect(await readdir(join(into, 'pg_tblspc'))).toEqual([])
    await agent.close()

    await mkdir(join(dataDirectory, 'base', ...Array.from({ length: 40 }, () => 'deep')), { recursive: true })
    await using deep = startAgent(server, { ...kept, prefix: 'database-3' })
    await expect
      .poll(() => deep.state().problem, PATIENCE)
      .toEqual({ reason: 'BackupFailed', message: 'the data directory has more than 16 levels of directories' })
    await deep.close()
    await rm(join(dataDirectory, 'base/deep'), { recursive: true })

    const place = join(server.root, 'place')
    await mkdir(place)
    await run('chown', ['--reference', dataDirectory, place])
    await (await server.client()).query(`CREATE TABLESPACE "elsewhere" LOCATION '${place}'`)
    await using next = startAgent(server, { ...kept, prefix: 'database-2' })
    await expect
      .poll(() => next.state().problem, PATIENCE)
      .toEqual({
        reason: 'BackupFailed',
        message: 'tablespaces outside of the data directory are not backed up: drop elsewhere',
      })
    expect(next.state().restoreWindow).toBeNull()
  })
})
