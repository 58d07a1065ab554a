// Its tests build on each other:
// @module-tag whole-file
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AgentState, STATE_KEY } from '../../../backup/agent-state.ts'
import { SCHEDULE } from '../../../backup/context.ts'
import { restore } from '../../../backup/postgresql/restore.ts'
import type { AgentProcess } from '../../support/backup/agent-process.ts'
import { type ArchivedServer, startArchived, startFrom } from '../../support/backup/archived-server.ts'
import {
  giveOrder,
  momentOf,
  movedClock,
  PREFIX,
  startAgent,
  startRestored,
  testRepository,
  type TestRepository,
  trapDrills,
  valueOf,
} from '../../support/backup/agents.ts'
import { PATIENCE, SLOW } from '../../support/backup/quick.ts'

const PROGRAM = fileURLToPath(new URL('../../support/backup/agent-process.ts', import.meta.url))

let kept: TestRepository
let server: ArchivedServer
let children: ChildProcess[]
beforeEach(async () => {
  children = []
  kept = await testRepository()
  server = await startArchived('15')
})
afterEach(async () => {
  for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  await server[Symbol.asyncDispose]()
  await kept[Symbol.asyncDispose]()
})

/** Starts an agent, or a restore, in a process of its own. */
async function start(input: Pick<AgentProcess, 'die' | 'schedule' | 'restore'>): Promise<ChildProcess> {
  const { files } = server
  const { port } = await server.client()
  const argument = JSON.stringify({ directory: kept.directory, files, port, ...input } satisfies AgentProcess)
  const child = spawn(process.execPath, [PROGRAM, argument], { stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

async function diesAt(input: Parameters<typeof start>[0]): Promise<void> {
  const child = await start(input)
  const [status, signal] = (await once(child, 'exit')) as [number | null, string | null]
  expect({ status, signal }).toEqual({ status: null, signal: 'SIGKILL' })
}

/** Ids of all backups that have an object, half-made ones included. */
async function backups(): Promise<readonly string[]> {
  const ids = new Set<string>()
  for await (const { key } of kept.repository.list(`${PREFIX}/base/`)) ids.add(key.split('/')[2] ?? '')
  return [...ids]
}

test.each([
  { step: 'before a part of a base backup', die: { operation: 'put', key: '/base/.*/data-', when: 'before' } },
  { step: 'after a part of a base backup', die: { operation: 'put', key: '/base/.*/data-', when: 'after' } },
  { step: 'before a manifest', die: { operation: 'put', key: 'manifest', when: 'before' } },
  { step: 'before the first segment of WAL', die: { operation: 'put', key: '/wal/', when: 'before' } },
  { step: 'after a segment of WAL, which is in the spool then', die: { operation: 'put', key: '/wal/', when: 'after' } },
  { step: 'before the first state', die: { operation: 'put', key: 'state.json', when: 'before' } },
] as const)('after kill -9 $step the next agent makes a backup that can be restored', SLOW, async ({ die }) => {
  await diesAt({ die })
  await giveOrder(kept.repository, { retentionDays: 35, backupVersion: 0 })
  const clock = movedClock()
  await using agent = startAgent(server, { ...kept, clock })
  await agent.archiving()
  const client = await server.client()
  await client.query('CREATE TABLE t AS SELECT 1 AS n')
  const time = await momentOf(client)
  await agent.reaches(time)
  expect(agent.state().backups.filter(({ status }) => status === 'succeeded')).toHaveLength(1)
  expect(agent.state().backups.filter(({ status }) => status === 'running')).toEqual([])
  await using copy = await startRestored(server, { ...kept, time })
  expect(await valueOf(await copy.client(), 'SELECT n FROM t')).toBe(1)
  // Retention removes the half-made backup when it counts as abandoned.
  clock.move(2 * 3_600_000)
  await expect.poll(backups, PATIENCE).toHaveLength(1)
})

test('after kill -9 right after a manifest the backup counts', SLOW, async () => {
  await diesAt({ die: { operation: 'put', key: 'manifest', when: 'after' } })
  await using agent = startAgent(server, kept)
  await agent.archiving()
  expect(agent.state().backups.filter(({ status }) => status === 'succeeded')).toHaveLength(1)
  expect(await backups()).toHaveLength(1)
})

test.each(['before', 'after'] as const)(
  'after kill -9 %s the first removal of retention the next agent removes the rest',
  SLOW,
  async (when) => {
    await giveOrder(kept.repository, { retentionDays: 1, backupVersion: 0 })
    const clock = movedClock()
    const first = startAgent(server, { ...kept, clock })
    await first.archiving()
    await giveOrder(kept.repository, { retentionDays: 1, backupVersion: 1 })
    await expect.poll(() => first.state().backupVersion, PATIENCE).toBe(1)
    await first.close()
    const oldest = (await backups())[0]
    // Retention takes the age of a half-made backup from its name.
    const orphan = '20200101T000000Z-dead'
    for (const part of ['data-0001.tar.gz', 'data-0002.tar.gz']) {
      const directory = join(kept.directory, PREFIX, 'base', orphan)
      await mkdir(directory, { recursive: true })
      await writeFile(join(directory, part), 'half-made')
    }
    await diesAt({ die: { operation: 'delete', key: orphan, when } })
    await using agent = startAgent(server, kept)
    await expect.poll(backups, PATIENCE).not.toContain(orphan)
    expect(await backups()).toContain(oldest)
    expect(agent.state().restoreWindow).not.toBeNull()
  },
)

describe('a restore', () => {
  test.each([
    { step: 'before its first read of a part', key: '/base/.*/data-' },
    { step: 'before its first read of WAL', key: '/wal/' },
  ])('that was killed $step begins again', SLOW, async ({ key }) => {
    const agent = startAgent(server, kept)
    await agent.archiving()
    const client = await server.client()
    await client.query('CREATE TABLE t AS SELECT 1 AS n')
    const time = await momentOf(client)
    await agent.reaches(time)
    await agent.close()
    await using copy = await startFrom('15', async (into) => {
      await diesAt({ restore: { into, time: time.toISOString() }, die: { operation: 'get', key, when: 'before' } })
      // The marker of the restore that was killed.
      expect(await readdir(into)).toContain('mooring_restore.json')
      await writeFile(join(into, 'half-made'), '')
      await restore({ ...kept, prefix: PREFIX, time, into, signal: new AbortController().signal })
      expect(await readdir(into)).not.toContain('half-made')
    })
    expect(await valueOf(await copy.client(), 'SELECT n FROM t')).toBe(1)
  })
})

describe('a drill', () => {
  const sockets = async (): Promise<readonly string[]> => {
    const names = await readdir(server.files.scratchDirectory, { recursive: true }).catch(() => [])
    return names.filter((name) => name.endsWith('.s.PGSQL.5432'))
  }

  test('whose agent was killed leaves no server, and the next agent drills', SLOW, async () => {
    const client = await server.client()
    await trapDrills(client)
    const child = await start({ schedule: { drillMs: 3_600_000 } })
    await expect.poll(sockets, { ...PATIENCE, interval: 5 }).toHaveLength(1)
    const [socket = ''] = await sockets()
    const directory = join(server.files.scratchDirectory, socket, '..')
    const pid = Number((await readFile(join(directory, 'postmaster.pid'), 'utf8')).split('\n')[0])
    child.kill('SIGKILL')
    await expect
      .poll(
        () =>
          stat(`/proc/${pid}`).then(
            () => 'alive',
            () => 'ended',
          ),
        PATIENCE,
      )
      .toBe('ended')
    await client.query('DROP TABLE public.trap')
    // The next drill restores the newest moment of the archive, which must come after the removal of the trap.
    const time = await momentOf(client)
    await using archiving = startAgent(server, kept)
    await archiving.reaches(time)
    await archiving.close()
    await using agent = startAgent(server, { ...kept, schedule: { drillMs: 3_600_000 } })
    await expect.poll(() => agent.state().lastVerifiedRestore, PATIENCE).not.toBeNull()
    await expect.poll(() => readdir(server.files.scratchDirectory), PATIENCE).toEqual([])
  })
})

test('a power failure loses no commit of the restore window that was reported last', SLOW, async () => {
  // A commit is in the window within a minute: after the intervals of shipping, of marks and of the state.
  expect(SCHEDULE.shipMs + SCHEDULE.markMs + SCHEDULE.stateMs).toBeLessThan(60_000)
  const child = await start({})
  const client = await server.client()
  await client.query('CREATE TABLE ticks (n int)')
  const latest = async (): Promise<number> => {
    const text = await readFile(join(kept.directory, PREFIX, STATE_KEY), 'utf8').catch(() => undefined)
    const window = text === undefined ? null : AgentState.parse(JSON.parse(text)).restoreWindow
    return window ? Date.parse(window.latest) : 0
  }
  await expect.poll(latest, PATIENCE).toBeGreaterThan(0)
  /** Time after each commit. */
  const ticks: number[] = []
  // Until the window contains a hundred commits.
  while ((await latest()) <= (ticks[100] ?? Infinity)) {
    await client.query('INSERT INTO ticks VALUES ($1)', [ticks.length])
    ticks.push(Date.now())
  }
  const killed = once(child, 'exit')
  child.kill('SIGKILL')
  await Promise.all([killed, server.kill()])
  await rm(server.files.dataDirectory, { recursive: true })
  const time = await latest()
  await using copy = await startRestored(server, { ...kept, time: new Date(time) })
  const found = await valueOf(await copy.client(), 'SELECT count(*)::int FROM ticks')
  expect(found).toBeGreaterThanOrEqual(ticks.filter((at) => at < time).length)
})
