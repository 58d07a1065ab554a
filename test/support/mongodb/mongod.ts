import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Document, MongoClient } from 'mongodb'
import type { Motor } from '../../../crds/motor.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { addressOf, dialling, TIMEOUTS } from '../../../operator/engines/mongodb/connection.ts'
import { writeDurably } from '../../../operator/server/process/files/durable-files.ts'
import { makeDirectories, makeEmpty, serverPaths } from '../../../operator/server/process/files/paths.ts'
import { binariesFor } from '../../../operator/server/process/programs/binaries.ts'
import { installEngine } from '../../../operator/server/process/programs/installation.ts'
import { mongodb } from '../../../operator/server/process/programs/mongodb.ts'
import type { EngineCertificate } from '../../../operator/server/process/programs/program.ts'
import { engineUser } from '../../../operator/server/process/spawn/engine-user.ts'
import { openDirectory, spawnEngine, type Spawned } from '../../../operator/server/process/spawn/spawn-engine.ts'
import { freePort } from '../free-port.ts'
import { scratch } from '../postgresql/disks.ts'

/** Motors by series, each served by the nearest version that is installed. */
const MOTORS = { '5.0': 'mongodb-5.0.9', '7.0': 'mongodb-7.0.2' } as const satisfies Readonly<Record<string, Motor>>
export type Series = keyof typeof MOTORS

export const SERIES = ['5.0', '7.0'] as const satisfies readonly Series[]

const ADMIN = { user: 'mooring', password: 'admin-of-a-throw-away-server' }
const START_MS = 120_000

export interface MongodOptions {
  /** Address and certificate of a server with TLS. Default: loopback, without TLS. */
  readonly tls?: EngineCertificate & { readonly listen: string; readonly host: string }
  readonly capacity?: number
}

/** MongoDB server for one test file, configured and brought into service as by the process runtime. */
export interface ThrowAwayMongod extends AsyncDisposable {
  readonly target: AdminTarget
  /** Version of the installed program. */
  readonly version: string
  /** Opens a client that ends with the server. Default: the admin. */
  client(login?: { user: string; password: string; database?: string }): Promise<MongoClient>
  /** Opens a client without a login. */
  nameless(): Promise<MongoClient>
  /** Runs a command as the admin. */
  command(database: string, command: Document): Promise<Document>
  /** Kills the server, and starts it again on the same port. */
  crash(): Promise<void>
  /** Starts the server again after it has stopped. */
  restart(): Promise<void>
  /** Resolves when the server has stopped. */
  stopped(): Promise<unknown>
  readonly pid: () => number
  log(): Promise<string>
}

async function installed(series: Series) {
  const binaries = await binariesFor(MOTORS[series], 'nearest')
  if (!binaries) throw new Error(`no MongoDB for ${MOTORS[series]}`)
  const user = await engineUser()
  return { binaries, installation: await installEngine(binaries, { user }), user }
}

/** Starts a {@link ThrowAwayMongod}. `npm run engines -- add` installs the programs. */
export async function startMongod(series: Series, { tls, capacity = 50 }: MongodOptions = {}): Promise<ThrowAwayMongod> {
  const { binaries, installation, user } = await installed(series)
  const root = await mkdtemp(join(await scratch(), 'mongod-'))
  const paths = serverPaths(root, 'server')
  const { listen, host } = tls ?? { listen: '127.0.0.1', host: '127.0.0.1' }
  const source = isIPv4(host) ? mongodb.adminSource : undefined
  const target: AdminTarget = { host, port: await freePort(), ca: tls?.ca, source, ...ADMIN }
  await makeDirectories(paths, user)
  await makeEmpty(paths.data, user)
  const files = mongodb.configure({
    ...{ listen, port: target.port, admin: ADMIN.user, password: ADMIN.password, capacity },
    certificate: tls ?? { key: '', certificate: '', ca: '' },
    sharedMemory: true,
  })
  for (const { name, content, secret } of files) {
    await writeDurably(join(paths.config, name), content, secret ? { mode: 0o600, owner: user } : { mode: 0o644 })
  }
  const log = async () =>
    `${await readFile(paths.early, 'utf8')}${await readFile(join(paths.log, 'mongod.log'), 'utf8').catch(() => '')}`

  async function start(): Promise<Spawned> {
    await using data = await openDirectory(paths.data)
    await using config = await openDirectory(paths.config)
    await using logs = await openDirectory(paths.log)
    const inherit = [data, config, logs]
    const server = await spawnEngine({ installation, command: mongodb.serve, user, inherit, output: paths.early })
    const deadline = Date.now() + START_MS
    while ((await mongodb.logIn(target)).login !== 'accepted') {
      if (server.child.exitCode !== null || Date.now() > deadline) throw new Error(`mongod does not serve: ${await log()}`)
      await delay(20)
    }
    return server
  }

  async function stop(signal: NodeJS.Signals): Promise<void> {
    // The child is gone from the process table only when its exit has been read.
    if (server.child.exitCode === null) server.child.kill(signal)
    await server.exited
  }

  let server = await start()
  const clients: MongoClient[] = []
  return {
    target,
    version: binaries.version,
    log,
    pid: () => server.child.pid ?? 0,
    stopped: () => server.exited,
    async client({ user, password, database = user } = { ...ADMIN, database: 'admin' }) {
      const client = new MongoClient(addressOf(target), {
        ...dialling({ ca: target.ca }, TIMEOUTS),
        auth: { username: user, password },
        authSource: database,
        maxPoolSize: 1,
      })
      clients.push(client)
      await client.connect()
      return client
    },
    nameless: () => new MongoClient(addressOf(target), dialling({ ca: target.ca }, TIMEOUTS)).connect(),
    async command(database, command) {
      await using client = new MongoClient(addressOf(target), {
        ...dialling(target, TIMEOUTS),
        auth: { username: ADMIN.user, password: ADMIN.password },
        authSource: 'admin',
      })
      return await client.db(database).command(command)
    },
    async crash() {
      await stop('SIGKILL')
      server = await start()
    },
    async restart() {
      await server.exited
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.close()))
      await stop('SIGKILL')
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
