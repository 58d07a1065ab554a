import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { restore } from '../../../backup/postgresql/restore.ts'
import { RepositoryCode } from '../../../backup/repository/port.ts'
import { MooringError } from '../../../shared/errors.ts'
import { type ArchivedServer, startArchived } from '../../support/backup/archived-server.ts'
import { faulty } from '../../support/backup/faulty-repository.ts'
import {
  giveOrder,
  momentOf,
  movedClock,
  PREFIX,
  startAgent,
  startRestored,
  testRepository,
  valueOf,
} from '../../support/backup/agents.ts'
import { PATIENCE, SLOW } from '../../support/backup/quick.ts'

const { signal } = new AbortController()

describe.each([
  { code: RepositoryCode.unavailable, reason: 'RepositoryUnavailable' },
  { code: RepositoryCode.full, reason: 'RepositoryFull' },
])('a repository with $code', ({ code, reason }) => {
  test('is reported, does not stop the server, and gets the archive later', SLOW, async () => {
    await using kept = await testRepository()
    const repository = faulty(kept.repository)
    await using server = await startArchived('15')
    await using agent = startAgent(server, { repository })
    await agent.archiving()
    const client = await server.client()
    repository.fault = () => {
      throw new MooringError(code, 'the repository is broken: repair it')
    }
    await client.query('CREATE TABLE meanwhile AS SELECT 1 AS n')
    const time = await momentOf(client)
    await expect.poll(() => agent.state().problem, PATIENCE).toEqual({ reason, message: 'the repository is broken: repair it' })
    const before = agent.state().restoreWindow?.earliest
    repository.fault = undefined
    await agent.reaches(time)
    await expect.poll(() => agent.state().problem, PATIENCE).toBeNull()
    // The window has no gap.
    expect(agent.state().restoreWindow?.earliest).toBe(before)
    await using copy = await startRestored(server, { ...kept, time })
    expect(await valueOf(await copy.client(), 'SELECT n FROM meanwhile')).toBe(1)
  })
})

test('a long outage of the repository ends the window, and a new backup begins the next one', SLOW, async () => {
  await using kept = await testRepository()
  const repository = faulty(kept.repository)
  await using server = await startArchived('15', { segments: 3 })
  await using agent = startAgent(server, { repository })
  await agent.archiving()
  const first = agent.state().restoreWindow
  const client = await server.client()
  await client.query('CREATE TABLE early AS SELECT 1 AS n')
  const early = await momentOf(client)
  await agent.reaches(early)
  repository.fault = () => {
    throw new MooringError(RepositoryCode.unavailable, 'the repository is away')
  }
  for (let n = 0; n < 8; n += 1) {
    await client.query(`CREATE TABLE t${n} (); SELECT pg_switch_wal()`)
  }
  // The server drops what does not fit, so that no WAL piles up in its own directory.
  await expect
    .poll(() => valueOf(client, `SELECT count(*)::int FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`), PATIENCE)
    .toBe(0)
  expect((await readdir(server.files.spoolDirectory)).filter((name) => !name.startsWith('.'))).toHaveLength(3)
  expect(agent.state().restoreWindow?.earliest).toBe(first?.earliest)
  await expect.poll(() => agent.state().problem?.reason, PATIENCE).toBe('RepositoryUnavailable')

  repository.fault = undefined
  await expect.poll(() => agent.state().backups.filter(({ status }) => status === 'succeeded').length, PATIENCE).toBe(2)
  const later = await momentOf(client)
  await agent.reaches(later)
  await expect.poll(() => agent.state().problem, PATIENCE).toBeNull()
  expect(Date.parse(agent.state().restoreWindow?.earliest ?? '')).toBeGreaterThan(early.getTime())
  // Both sides of the gap can be restored.
  for (const [time, tables] of [
    [early, 0],
    [later, 8],
  ] as const) {
    await using copy = await startRestored(server, { ...kept, time })
    expect(await valueOf(await copy.client(), `SELECT count(*)::int FROM pg_class WHERE relname ~ '^t[0-9]$'`)).toBe(tables)
  }
})

test('a slow repository delays archiving, and no statement of the server', SLOW, async () => {
  await using kept = await testRepository()
  const repository = faulty(kept.repository)
  await using server = await startArchived('15')
  const puts: (() => void)[] = []
  await using agent = startAgent(server, { repository })
  await expect.poll(() => agent.state().archivedAt, PATIENCE).not.toBeNull()
  repository.fault = (operation, key) =>
    operation === 'put' && key.includes('/wal/') ? new Promise((resolve) => puts.push(resolve)) : undefined
  const client = await server.client()
  await client.query('CREATE TABLE slow AS SELECT 1 AS n')
  const time = await momentOf(client)
  await expect.poll(() => puts.length, PATIENCE).toBe(1)
  await client.query('INSERT INTO slow VALUES (2)')
  expect(Date.parse(agent.state().archivedAt ?? '')).toBeLessThan(time.getTime())
  repository.fault = undefined
  for (const go of puts) go()
  await agent.reaches(time)
})

/** Flips a bit in the middle of an object. */
async function damage(directory: string, key: string): Promise<void> {
  await using file = await open(join(directory, key), 'r+')
  const position = Math.floor((await file.stat()).size / 2)
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, position)
  await file.write(Buffer.of(buffer.readUInt8(0) ^ 0x10), 0, 1, position)
}

async function keysOf(server: { readonly directory: string }, folder: string): Promise<readonly string[]> {
  const entries = await readdir(join(server.directory, PREFIX, folder), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((entry) => join(entry.parentPath, entry.name).slice(server.directory.length + 1)).sort()
}

describe('a flipped bit', () => {
  async function archived(server: ArchivedServer, kept: Awaited<ReturnType<typeof testRepository>>): Promise<Date> {
    await using agent = startAgent(server, kept)
    await agent.archiving()
    const client = await server.client()
    for (let n = 0; n < 3; n += 1) {
      await client.query(`CREATE TABLE t${n} ()`)
      await agent.reaches(await momentOf(client))
    }
    return new Date(agent.state().restoreWindow?.latest ?? '')
  }

  test.each([
    { what: 'a part of a base backup', folder: 'base', pick: (key: string) => key.endsWith('.tar.gz'), leaves: 'nothing' },
    { what: 'a manifest', folder: 'base', pick: (key: string) => key.endsWith('manifest.json'), leaves: 'nothing' },
    { what: 'the last segment of WAL', folder: 'wal', pick: () => true, leaves: 'an earlier end' },
  ])('in $what is found by a restore, and shrinks the window', SLOW, async ({ folder, pick, leaves }) => {
    await using kept = await testRepository()
    await using server = await startArchived('15')
    const time = await archived(server, kept)
    const key = (await keysOf(kept, folder)).findLast(pick) ?? ''
    await damage(kept.directory, key)
    const into = join(server.root, 'damaged')
    const failure = restore({ ...kept, prefix: PREFIX, time, into, signal })
    await expect(failure).rejects.toMatchObject({
      code: expect.stringMatching(/^archive_corrupt|outside_restore_window$/) as string,
    })
    // From what is left, without any restart.
    const again = restore({ ...kept, prefix: PREFIX, time, into, signal })
    await expect(again).rejects.toMatchObject({
      code: 'outside_restore_window',
      message: expect.stringContaining(leaves === 'nothing' ? 'no complete backup' : 'choose one from') as string,
    })
  })

  test('in a base backup is found by the drill, which has a new one made and verified', SLOW, async () => {
    await using kept = await testRepository()
    await using server = await startArchived('15')
    await archived(server, kept)
    const key = (await keysOf(kept, 'base')).find((name) => name.endsWith('.tar.gz')) ?? ''
    await damage(kept.directory, key)
    await using agent = startAgent(server, { ...kept, schedule: { drillMs: 3_600_000, retryMs: 200 } })
    await expect.poll(() => agent.state().drillError, PATIENCE).toContain('differs from its checksum')
    expect(agent.state().problem).toMatchObject({
      reason: 'ArchiveCorrupt',
      message: expect.stringContaining(key.slice(PREFIX.length + 1)) as string,
    })
    await expect.poll(() => agent.state().lastVerifiedRestore, PATIENCE).not.toBeNull()
    const [newest, damaged] = agent.state().backups
    expect(newest).toMatchObject({ status: 'succeeded', lastVerifiedRestore: agent.state().lastVerifiedRestore })
    expect(damaged).toMatchObject({ status: 'failed', error: 'an object of the backup is missing or corrupt' })
    expect(agent.state()).toMatchObject({ drillError: null, problem: null })
  })

  test('a segment that was removed shrinks the window at the next listing', SLOW, async () => {
    await using kept = await testRepository()
    await using server = await startArchived('15')
    await archived(server, kept)
    const wal = await keysOf(kept, 'wal')
    await kept.repository.delete([wal.at(-1) ?? ''])
    await using agent = startAgent(server, kept)
    await agent.archiving()
    await expect.poll(() => agent.state().backups.length, PATIENCE).toBe(2)
  })
})

test('backups and WAL older than the retention are removed, a requested backup is made once', SLOW, async () => {
  await using kept = await testRepository()
  await using server = await startArchived('15')
  const clock = movedClock()
  await giveOrder(kept.repository, { retentionDays: 1, backupVersion: 0 })
  await using agent = startAgent(server, { ...kept, clock })
  await agent.archiving()
  const [first] = agent.state().backups
  await giveOrder(kept.repository, { retentionDays: 1, backupVersion: 3 })
  await expect.poll(() => agent.state().backupVersion, PATIENCE).toBe(3)
  expect(agent.state().backups.map(({ kind, status }) => ({ kind, status }))).toEqual([
    { kind: 'requested', status: 'succeeded' },
    { kind: 'scheduled', status: 'succeeded' },
  ])
  const before = await keysOf(kept, 'wal')
  clock.move(25 * 3_600_000)
  // Two stay: the backup of the next day, and the newer one of the others, which covers the oldest time of the retention.
  await expect.poll(() => agent.state().backups.length, PATIENCE).toBe(2)
  await expect.poll(() => agent.state().backups.map(({ id }) => id), PATIENCE).not.toContain(first?.id)
  await expect.poll(() => keysOf(kept, 'wal'), PATIENCE).not.toContain(before[0])
  expect(Date.parse(agent.state().restoreWindow?.earliest ?? '')).toBeGreaterThan(Date.parse(first?.finishedAt ?? ''))
})
