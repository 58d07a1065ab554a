import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, readFile, rm, statfs, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import type { AdminTarget } from '../../operator/engines/engine.ts'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../operator/engines/postgresql-settings.ts'

export const SERIES = ['14', '15'] as const
export type Series = (typeof SERIES)[number]

const ADMIN = { user: 'mooring', password: 'admin-of-a-throw-away-server' }
/** Engines refuse to run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
const START_MS = 30_000
const MEMORY_BYTES = 4 * 1024 ** 3

/** A PostgreSQL server of its own for one test file, on loopback, set up as Mooring sets up its shared servers. */
export interface ThrowAwayPostgres extends AsyncDisposable {
  readonly target: AdminTarget
  /** A connected client that ends with the server. Default: the admin in the maintenance database. */
  client(login?: { user?: string; password?: string; database?: string }): Promise<pg.Client>
  /** Ends the server at once, as after a crash, and brings it up again on the same port. */
  crash(): Promise<void>
  /** Everything that the server logged. */
  log(): string
}

export async function startPostgres(series: Series): Promise<ThrowAwayPostgres> {
  const native = await installation(series)
  const data = await mkdtemp(join(await scratch(), `postgres-${series}-`))
  const passwordFile = `${data}.pw`
  if (NOBODY.uid !== undefined) await chown(data, NOBODY.uid, NOBODY.gid)
  await writeFile(passwordFile, ADMIN.password)
  const initdb = [
    '-U',
    ADMIN.user,
    `--pwfile=${passwordFile}`,
    '-A',
    'scram-sha-256',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    '--no-sync',
  ]
  await run(join(native, 'bin/initdb'), ['-D', data, ...initdb])

  const target = { host: '127.0.0.1', port: await freePort(), ...ADMIN }
  const hbaFile = join(data, 'pg_hba.conf')
  const settings = postgresqlSettings({ listen: '127.0.0.1', port: target.port, hbaFile })
  await writeFile(join(data, 'postgresql.conf'), postgresqlConf(settings))
  await writeFile(hbaFile, postgresqlHba({ admin: ADMIN.user, reach: 'loopback' }))

  let log = ''
  const start = async (): Promise<ChildProcess> => {
    const server = spawn(join(native, 'bin/postgres'), ['-D', data], { ...NOBODY, stdio: ['ignore', 'ignore', 'pipe'] })
    server.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    await untilReachable(target, server, () => log)
    return server
  }
  let server = await start()
  const clients: pg.Client[] = []

  return {
    target,
    log: () => log,
    async client(login = {}) {
      const client = new pg.Client({ host: target.host, port: target.port, ...ADMIN, database: 'postgres', ...login })
      client.on('error', () => undefined)
      await client.connect()
      clients.push(client)
      return client
    },
    async crash() {
      // PostgreSQL's immediate shutdown: no goodbye, no checkpoint, recovery at the next start.
      await stop(server, 'SIGQUIT')
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      // A crash would leave shared memory behind.
      await stop(server, 'SIGINT')
      await Promise.all(clients.map((client) => client.end()))
      await rm(data, { recursive: true, force: true })
      await rm(passwordFile, { force: true })
    },
  }
}

/** In memory where there is room: a database is 300 files, which some disks take most of a second to remove. */
async function scratch(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  return memory && memory.bavail * memory.bsize > MEMORY_BYTES ? '/dev/shm' : tmpdir()
}

const Links = z.array(z.object({ source: z.string(), target: z.string() }))

/** The package leaves the links between its libraries to an install script; they are made here. */
async function installation(series: Series): Promise<string> {
  const root = dirname(createRequire(import.meta.url).resolve(`postgresql-${series}/package.json`))
  const links = Links.parse(JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8')))
  await Promise.all(
    links.map(async ({ source, target }) => {
      await symlink(basename(source), join(root, target)).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
      })
    }),
  )
  return join(root, 'native')
}

async function run(file: string, args: readonly string[]): Promise<void> {
  const child = spawn(file, args, { ...NOBODY, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  await once(child, 'exit')
  if (child.exitCode !== 0) throw new Error(`${file}: ${errors}`)
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill(signal)
  await exit
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function untilReachable(target: AdminTarget, server: ChildProcess, log: () => string): Promise<void> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended at once: ${log()}`)
    if (await accepts(target)) return
    await delay(20)
  }
  throw new Error(`PostgreSQL does not come up: ${log()}`)
}

async function accepts(target: AdminTarget): Promise<boolean> {
  const client = new pg.Client({ ...target, database: 'postgres' })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end()
  }
}
