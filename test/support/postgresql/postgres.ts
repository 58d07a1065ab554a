import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import pg from 'pg'
import { z } from 'zod'
import {
  postgresqlConf,
  postgresqlHba,
  postgresqlSettings,
  type Settings,
} from '../../../operator/engines/postgresql/settings.ts'
import { binariesFor } from '../../../operator/server/process/programs/binaries.ts'
import { type EngineUser, engineUser } from '../../../operator/server/process/spawn/engine-user.ts'
import { initialiseData } from '../../../operator/server/process/data/initialise.ts'
import { installEngine } from '../../../operator/server/process/programs/installation.ts'
import { blankPaths, makeDirectories, serverPaths } from '../../../operator/server/process/files/paths.ts'
import { PROGRAMS } from '../../../operator/server/process/programs/programs.ts'
import type { EngineCertificate } from '../../../operator/server/process/programs/program.ts'
import { freePort } from '../free-port.ts'
import { isFull } from '../scope.ts'
import { scratch, shareBlanks } from './disks.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { dialling, TIMEOUTS } from '../../../operator/engines/postgresql/connection.ts'
import { patient } from '../patience.ts'

/** Login of the administrator of every such server. */
export const ADMIN = { user: 'mooring', password: 'admin-of-a-throw-away-server' }

/** PostgreSQL server for one test file, configured like Mooring's shared servers. */
export interface ThrowAwayPostgres extends AsyncDisposable {
  readonly target: AdminTarget
  /** Version that the program reports: `15.4`. */
  readonly version: string
  /** Connects a client that ends with the server. Default: the admin in the maintenance database. */
  readonly client: (login?: { user?: string; password?: string; database?: string }) => Promise<pg.Client>
  /** Kills the server as in a crash, and starts it again on the same port. */
  crash(): Promise<void>
  /** Returns the log of the server. */
  log(): string
}

/** Series of PostgreSQL that Mooring offers. */
const Series = z.enum(['14', '15'])
export type Series = z.output<typeof Series>

/** Series to test: the one that `MOORING_TEST_SERIES` names, all in the full run, else the newest. */
export const SERIES = seriesOf(process.env.MOORING_TEST_SERIES ?? '')

function seriesOf(named: string): readonly Series[] {
  if (named !== '') return [Series.parse(named)]
  return isFull ? Series.options : ['15']
}

/** Settings of a server that a test overrides. */
export interface PostgresOptions {
  /** Databases to which any role may connect. */
  readonly own?: readonly string[]
  /** Offers TLS without requiring it. */
  readonly tls?: EngineCertificate
  /** Settings that replace those of a shared server. */
  readonly settings?: Settings
}

/** Starts a {@link ThrowAwayPostgres} on loopback, from the npm packages. */
export async function startPostgres(
  series: Series,
  { own = [], tls, settings: replaced }: PostgresOptions = {},
): Promise<ThrowAwayPostgres> {
  const { data, native, user, root } = await dataOf(series)
  const target = { host: '127.0.0.1', port: await freePort(), ...ADMIN }
  const hbaFile = join(data, 'pg_hba.conf')
  const settings = postgresqlSettings({
    ...{ listen: '127.0.0.1', port: target.port, hbaFile },
    tls: tls && (await certificateFiles({ data, user }, tls)),
  })
  await writeFile(join(data, 'postgresql.conf'), postgresqlConf({ ...settings, ...replaced }))
  await writeFile(hbaFile, postgresqlHba({ admin: ADMIN.user, reach: 'loopback', own, hasExporter: true }))

  let log = ''
  const start = async (): Promise<ChildProcess> => {
    const server = spawn(join(native, 'bin/postgres'), ['-D', data], { ...user, stdio: ['ignore', 'ignore', 'pipe'] })
    server.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    await untilReachable({ target, isAlive: () => server.exitCode === null, log: () => log })
    return server
  }
  let server = await start()
  const clients = clientsOf(target)

  return {
    target,
    log: () => log,
    version: versionIn(await run(join(native, 'bin/postgres'), ['--version'])),
    client: clients.open,
    async crash() {
      // PostgreSQL's immediate shutdown: no checkpoint, and recovery at the next start.
      await stop(server, 'SIGQUIT')
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      // A crash would leave shared memory behind.
      await stop(server, 'SIGINT')
      await clients.end()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function certificateFiles({ data, user }: Pick<Data, 'data' | 'user'>, { certificate, key }: EngineCertificate) {
  const files = { certFile: join(data, 'server.crt'), keyFile: join(data, 'server.key') }
  await writeFile(files.certFile, certificate)
  await writeFile(files.keyFile, key, { mode: 0o600 })
  for (const file of Object.values(files)) await chown(file, user.uid, user.gid)
  return files
}

export interface Data {
  /** Directories to remove at the end. */
  readonly root: string
  readonly data: string
  readonly native: string
  readonly user: EngineUser
}

/** Creates the data of a server as Mooring does, in a directory that the server's user can reach by name; in memory unless `parent` is given. */
export async function dataOf(series: Series, parent?: string): Promise<Data> {
  const motor = (['postgresql-14.4.0', 'postgresql-15.4.0'] as const).find((motor) => motor.startsWith(`postgresql-${series}`))
  const binaries = motor && (await binariesFor(motor, 'nearest'))
  const program = PROGRAMS.postgresql
  if (!binaries || !program) throw new Error(`no PostgreSQL ${series} here`)
  const user = await engineUser()
  const installation = await installEngine(binaries, { user })
  const root = await mkdtemp(join(parent ?? (await scratch()), `postgres-${series}-`))
  await shareBlanks(root)
  const paths = serverPaths(root, 'server')
  const blank = blankPaths(root, { binaries, program, admin: ADMIN.user })
  await makeDirectories(paths, user)
  const logger = pino({ level: 'warn' })
  await initialiseData(
    { paths, blank, binaries, program, installation, maker: user, user, logger },
    ADMIN,
    new AbortController().signal,
  )
  for (const directory of [root, paths.root]) await chmod(directory, 0o755)
  return { root, data: paths.data, native: join(installation, 'native'), user }
}

/** Runs a program. @returns its stdout */
async function run(file: string, args: readonly string[]): Promise<string> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  await once(child, 'close')
  if (child.exitCode !== 0) throw new Error(`${file}: ${errors}`)
  return output
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill(signal)
  await exit
}

/** Clients of one server, disposed together. */
export interface Clients {
  readonly open: ThrowAwayPostgres['client']
  end(): Promise<void>
}

/** Creates clients of a server, none of which is connected yet. */
export function clientsOf(target: AdminTarget): Clients {
  const clients: pg.Client[] = []
  return {
    async open(login = {}) {
      const { user, password } = target
      const client = new pg.Client({ ...dialling(target, TIMEOUTS), user, password, database: 'postgres', ...login })
      client.on('error', () => undefined)
      await client.connect()
      clients.push(client)
      return client
    },
    async end() {
      await Promise.all(clients.map((client) => client.end()))
    },
  }
}

const START_MS = patient(60_000)

/** Server that does not accept logins yet. */
export interface Starting {
  readonly target: AdminTarget
  /** Whether the server still runs, so that waiting makes sense. */
  readonly isAlive: () => boolean
  readonly log: () => string
}

/** Waits until the admin can log in. @throws Error with the server's log when that fails */
export async function untilReachable({ target, isAlive, log }: Starting): Promise<void> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    if (!isAlive()) throw new Error(`PostgreSQL ended at once: ${log()}`)
    if (await accepts(target)) return
    await delay(20)
  }
  throw new Error(`PostgreSQL does not accept logins: ${log()}`)
}

async function accepts(target: AdminTarget): Promise<boolean> {
  const clients = clientsOf(target)
  try {
    await clients.open()
    return true
  } catch {
    return false
  } finally {
    await clients.end()
  }
}

/** Extracts the version: `postgres (PostgreSQL) 15.4 (Debian …)` → `15.4`. */
export function versionIn(output: string): string {
  const version = /\d+\.\d+/.exec(output)?.[0]
  if (version === undefined) throw new Error(`no version: ${output}`)
  return version
}
