import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { archiveSettings } from '../../../backup/postgresql/settings.ts'
import type { PostgresqlFiles } from '../../../backup/postgresql/server.ts'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../../operator/engines/postgresql/settings.ts'
import type { EngineUser } from '../../../operator/server/process/spawn/engine-user.ts'
import { freePort } from '../free-port.ts'
import { ADMIN, clientsOf, type Data, dataOf, type Series, untilReachable } from '../postgresql/postgres.ts'

/** Name of the spool in the data directory. */
const SPOOL = 'mooring_spool'

/** PostgreSQL server with the settings of a dedicated server that is archived, on loopback. */
export interface ArchivedServer extends AsyncDisposable {
  readonly files: PostgresqlFiles
  readonly series: Series
  /** Opens a connection of the administrator, which ends with the server. */
  client(database?: string): Promise<pg.Client>
  /** Kills all processes of the server. */
  kill(): Promise<void>
  start(): Promise<void>
  log(): string
  /** Directory for further files of the test, on the same file system. */
  readonly root: string
}

export interface ArchivedOptions {
  readonly settings?: Readonly<Record<string, string>>
  /** Maximum number of segments in the spool. */
  readonly segments?: number
  /** Directory for the data. Default: one in memory. */
  readonly parent?: string
}

export async function startArchived(series: Series, options: ArchivedOptions = {}): Promise<ArchivedServer> {
  return serve(series, await dataOf(series, options.parent), options)
}

/** Starts a server on a directory that `fill` has filled, such as by a restore. */
export async function startFrom(
  series: Series,
  fill: (directory: string) => Promise<unknown>,
  options: ArchivedOptions = {},
): Promise<ArchivedServer> {
  const made = await dataOf(series, options.parent)
  await rm(made.data, { recursive: true })
  await fill(made.data)
  await own(made.data, made.user)
  return serve(series, made, options)
}

async function own(directory: string, user: EngineUser): Promise<void> {
  const entries = await readdir(directory, { recursive: true })
  for (const path of [directory, ...entries.map((name) => join(directory, name))]) await chown(path, user.uid, user.gid)
}

async function serve(series: Series, { data, native, user, root }: Data, options: ArchivedOptions): Promise<ArchivedServer> {
  const target = { host: '127.0.0.1', port: await freePort(), ...ADMIN }
  const hbaFile = join(root, 'pg_hba.conf')
  const settings = {
    ...postgresqlSettings({ listen: '127.0.0.1', port: target.port, hbaFile }),
    ...archiveSettings(SPOOL, { segments: options.segments ?? 64 }),
    ...options.settings,
  }
  const config = join(root, 'postgresql.conf')
  await writeFile(config, postgresqlConf(settings))
  await writeFile(hbaFile, postgresqlHba({ admin: ADMIN.user, reach: 'loopback' }))
  const scratchDirectory = join(root, 'scratch')
  await mkdir(scratchDirectory, { recursive: true, mode: 0o700 })
  const clients = clientsOf(target)
  const program = { postgres: join(native, 'bin/postgres'), env: {}, user }
  let log = ''
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const server = spawn(program.postgres, ['-D', data, '-c', `config_file=${config}`], {
      ...user,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    server.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    child = server
    await untilReachable({ target, isAlive: () => server.exitCode === null, log: () => log })
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'close')
    if (signal === 'SIGKILL') process.kill(-child.pid, signal)
    else child.kill(signal)
    await exit
  }

  await start()
  return {
    ...{ series, root, start },
    files: {
      dataDirectory: data,
      spoolDirectory: join(data, SPOOL),
      scratchDirectory,
      connect: (database = 'postgres') => clientsOf(target).open({ database }),
      administrator: ADMIN.user,
      program,
      engineVersion: series === '14' ? '14.5' : '15.4',
    },
    client: (database = 'postgres') => clients.open({ database }),
    kill: () => end('SIGKILL'),
    log: () => log,
    async [Symbol.asyncDispose]() {
      await end('SIGINT')
      await clients.end().catch(() => undefined)
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
