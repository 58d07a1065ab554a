import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtempDisposable, open, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { createAgent } from '../../../backup/agent.ts'
import { systemBackupClock } from '../../../backup/clock.ts'
import { restore } from '../../../backup/postgresql/restore.ts'
import { createDirectoryRepository } from '../../../backup/repository/directory.ts'
import { type ArchivedServer, startArchived } from '../../support/backup/archived-server.ts'
import { ADMIN } from '../../support/postgresql/postgres.ts'
import { type Finding, finding, type Measure } from '../measure.ts'
import { until } from '../metrics.ts'
import { ratio, timed } from '../statistics.ts'

const exec = promisify(execFile)

/** Settings of a server without the add-on. */
const NOT_ARCHIVED = { wal_level: 'minimal', archive_mode: 'off' }
const ROUNDS = 12
const BLOCK = 4
const ROUND_S = 5
/** Scale of pgbench whose tables have 1 GB. */
const GIGABYTE = 68
const PREFIX = 'bench'
/** Age of the end of the window that says that archiving does not keep up, in ms. */
const LATE_MS = 90_000

async function pgbench(server: ArchivedServer, args: readonly string[]): Promise<string> {
  const { port } = await server.client()
  const address = ['-h', '127.0.0.1', '-p', `${port}`, '-U', ADMIN.user]
  const { stdout } = await exec('pgbench', [...address, ...args, 'postgres'], {
    env: { ...process.env, PGPASSWORD: ADMIN.password },
  })
  return stdout
}

async function transactionsPerSecond(server: ArchivedServer): Promise<number> {
  const output = await pgbench(server, ['-n', '-c', '8', '-j', '2', '-T', `${ROUND_S}`])
  const [, tps] = /^tps = ([\d.]+)/m.exec(output) ?? []
  if (tps === undefined) throw new Error(`pgbench printed no tps: ${output}`)
  return Number(tps)
}

interface Bench extends AsyncDisposable {
  readonly directory: string
  readonly server: ArchivedServer
  /** Starts an agent with the default schedule, and waits until it has a window. */
  agent(): Promise<AsyncDisposable & { latest(): Date }>
}

async function bench(settings?: Readonly<Record<string, string>>): Promise<Bench> {
  const dir = await mkdtempDisposable(join(tmpdir(), 'mooring-bench-'))
  await exec('chmod', ['755', dir.path])
  const server = await startArchived('15', { parent: dir.path, ...(settings && { settings }) })
  const repository = join(dir.path, 'repository')
  await mkdir(repository)
  return {
    server,
    directory: repository,
    async agent() {
      const agent = createAgent({
        ...{ repository: createDirectoryRepository({ directory: repository }), prefix: PREFIX, server: server.files },
        ...{ clock: systemBackupClock, log: pino({ level: 'warn' }), schedule: { drillMs: Infinity, bytesPerSecond: Infinity } },
      })
      await until('a window', () => Promise.resolve(agent.state().restoreWindow !== null), { everyMs: 20 })
      return {
        latest: () => new Date(agent.state().restoreWindow?.latest ?? ''),
        [Symbol.asyncDispose]: () => agent.close(),
      }
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await dir.remove()
    },
  }
}

async function measureArchiving(): Promise<readonly Finding[]> {
  await using plain = await bench(NOT_ARCHIVED)
  await using archived = await bench()
  for (const { server } of [plain, archived]) await pgbench(server, ['-i', '-q', '-s', '10'])
  await using agent = await archived.agent()
  const [without, with_]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    without.push(await transactionsPerSecond(plain.server))
    with_.push(await transactionsPerSecond(archived.server))
  }
  if (agent.latest().getTime() < Date.now() - LATE_MS) throw new Error('archiving did not keep up')
  const { median, low, high } = ratio(with_, without, BLOCK)
  const cost = (of: number): number => (1 - of) * 100
  const spread = `${cost(high).toFixed(1)} to ${cost(low).toFixed(1)}`
  return [finding('fall of pgbench throughput', { value: cost(median), unit: '%', spread }, 5)]
}

export const archivingCost: Measure = {
  name: 'archiving',
  method: `pgbench (8 clients, scale 10) for ${ROUND_S} s on a server with and on one without archiving, in turns, ${ROUNDS} rounds; the agent and its repository are on the same machine and disk.`,
  run: measureArchiving,
}

/** Copies files, with their SHA-256, durably: what a restore does at the least. */
async function copyWithChecksums(from: string, to: string): Promise<void> {
  const entries = await readdir(from, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const target = join(to, path.slice(from.length))
    await mkdir(dirname(target), { recursive: true })
    await using source = await open(path)
    await using copy = await open(target, 'wx')
    const hash = createHash('sha256')
    for await (const chunk of source.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      await copy.writeFile(chunk)
    }
    hash.digest()
    await copy.sync()
  }
}

async function measureRestore(): Promise<readonly Finding[]> {
  await using archived = await bench()
  const { server, directory } = archived
  await pgbench(server, ['-i', '-q', '-s', `${GIGABYTE}`])
  await using agent = await archived.agent()
  const repository = createDirectoryRepository({ directory })
  const [restores, copies]: [number[], number[]] = [[], []]
  for (let round = 0; round < 3; round++) {
    const into = join(directory, `../restored-${round}`)
    const request = { repository, prefix: PREFIX, time: agent.latest(), into, signal: new AbortController().signal }
    restores.push(await timed(() => restore(request)))
    const copied = `${into}-copied`
    copies.push(await timed(() => copyWithChecksums(into, copied)))
    await exec('rm', ['-r', into, copied])
  }
  const { median, low, high } = ratio(restores, copies, 1)
  const seconds = (of: readonly number[]): string => of.map((ms) => (ms / 1000).toFixed(1)).join(', ')
  const spread = `${low.toFixed(2)}–${high.toFixed(2)}: ${seconds(restores)} against ${seconds(copies)} s`
  return [
    finding('restore of 1 GB against a copy of its files with checksums', { value: median, unit: '×', digits: 2, spread }, 2),
  ]
}

export const restoreTime: Measure = {
  name: 'restore',
  method:
    'Restore of a server with 1 GB of pgbench tables from a repository on the same disk, until the files are ready for recovery, against a copy of the restored files with their SHA-256, flushed; 3 rounds in turns.',
  run: measureRestore,
}
