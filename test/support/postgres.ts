import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../operator/engines/postgresql-settings.ts'
import { scratch } from './scratch.ts'
import { ADMIN, clientsOf, type ThrowAwayPostgres, untilReachable, versionIn } from './throw-away-postgres.ts'

export type { ThrowAwayPostgres } from './throw-away-postgres.ts'

export const SERIES = ['14', '15'] as const
export type Series = (typeof SERIES)[number]

/** Engines refuse to run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

/** A {@link ThrowAwayPostgres} on loopback, from the npm packages. */
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
      // PostgreSQL's immediate shutdown: no goodbye, no checkpoint, recovery at the next start.
      await stop(server, 'SIGQUIT')
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      // A crash would leave shared memory behind.
      await stop(server, 'SIGINT')
      await clients.end()
      await rm(data, { recursive: true, force: true })
      await rm(passwordFile, { force: true })
    },
  }
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

/** @returns what it wrote to stdout */
async function run(file: string, args: readonly string[]): Promise<string> {
  const child = spawn(file, args, { ...NOBODY, stdio: ['ignore', 'pipe', 'pipe'] })
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
