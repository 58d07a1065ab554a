import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import mysql, { type Connection, type ConnectionOptions } from 'mysql2/promise'
import { pino } from 'pino'
import { type Motor, partsOf } from '../../../crds/motor.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import type { MysqlFamily } from '../../../operator/engines/mysql/catalog.ts'
import { bringUp, type Serving } from '../../../operator/server/process/bring-up.ts'
import { chooseConfinement } from '../../../operator/server/process/confinement/confinement.ts'
import { blankPaths, serverPaths } from '../../../operator/server/process/files/paths.ts'
import { binariesFor } from '../../../operator/server/process/programs/binaries.ts'
import { installEngine } from '../../../operator/server/process/programs/installation.ts'
import { PROGRAMS } from '../../../operator/server/process/programs/programs.ts'
import { sendSignal, waitForExit } from '../../../operator/server/process/spawn/proc.ts'
import { makeCertificate } from '../operator/process-runtime.ts'
import { shareBlanks, scratch } from '../postgresql/disks.ts'

/** Motors of both families, each with the version of the server that stands for it here. */
export const MOTORS = [
  { motor: 'mariadb-10.7.4', version: '10.11.19', family: 'mariadb' },
  { motor: 'mysql-8.0.29', version: '8.0.15', family: 'mysql' },
  { motor: 'mysql-5.7.38', version: '5.7.22', family: 'mysql' },
] as const satisfies readonly { motor: Motor; version: string; family: MysqlFamily }[]
export type MysqlMotor = (typeof MOTORS)[number]['motor']

const ADMIN = { user: 'mooring', password: "admin's_of_a_throw-away_server" }

/** MySQL or MariaDB server for one test file, configured and started as Mooring does. */
export interface ThrowAwayMysql extends AsyncDisposable {
  readonly target: AdminTarget
  /** Directory of the data. */
  readonly data: string
  /** Connects a client that ends with the server. Default: the admin. */
  readonly client: (login?: ConnectionOptions) => Promise<Connection>
  /** Kills the server as in a crash, and starts it again on the same port. */
  crash(): Promise<void>
  /** Returns the log of the server. */
  log(): Promise<string>
}

/** Starts a {@link ThrowAwayMysql} on loopback, from the engines that `npm run engines` installs. `parent`: directory of its data. */
export async function startMysql(motor: MysqlMotor, parent?: string): Promise<ThrowAwayMysql> {
  const binaries = await binariesFor(motor, 'nearest')
  const { family } = partsOf(motor)
  const program = PROGRAMS[family]
  if (!binaries || !program) throw new Error(`no server for ${motor} here`)
  const root = await mkdtemp(join(parent ?? (await scratch()), `${motor}-`))
  await chmod(root, 0o700)
  await shareBlanks(root)
  const logger = pino({ level: 'silent' })
  const confinement = await chooseConfinement({ directory: root, logger })
  const certificate = await makeCertificate()
  const paths = serverPaths(root, 'server')
  const stop = new AbortController()
  const start = async (): Promise<Serving> =>
    bringUp(
      {
        ...{ paths, program, binaries, confinement, logger, capacity: 20, listen: '127.0.0.1' },
        blank: blankPaths(root, { binaries, program, admin: ADMIN.user }),
        install: () => installEngine(binaries, { user: confinement.maker }),
        user: await confinement.userOf('server'),
        certificate: () => certificate,
        reservedPorts: () => Promise.resolve(new Set()),
      },
      ADMIN,
      stop.signal,
    )

  let serving = await start()
  const host = '127.0.0.1'
  const { port, adminPort } = serving
  const target: AdminTarget = {
    ...{ host, port, ...ADMIN },
    ...(adminPort !== undefined && { adminAddress: { host, port: adminPort } }),
  }
  const clients: Connection[] = []
  const log = async () => readFile(join(paths.log, 'mysqld.log'), 'utf8').catch(() => '')

  async function untilReachable(): Promise<void> {
    for (;;) {
      const { login } = (await program?.logIn(target)) ?? { login: 'refused' }
      if (login === 'accepted') return
      if (login === 'refused' || !(await isServing(serving))) throw new Error(`${motor} does not accept logins: ${await log()}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async function kill(): Promise<void> {
    await sendSignal(serving.process, 'SIGKILL')
    await waitForExit([serving.process], 60_000)
  }

  await untilReachable()
  return {
    target,
    data: paths.data,
    log,
    async client(login = {}) {
      const { host, port, user, password } = target
      const client = await mysql.createConnection({ host, port, user, password, ...login })
      client.on('error', () => undefined)
      clients.push(client)
      return client
    },
    async crash() {
      await kill()
      serving = await start()
      await untilReachable()
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy()
      await kill()
      stop.abort()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function isServing({ exited }: Serving): Promise<boolean> {
  return Promise.race([exited.then(() => false), Promise.resolve(true)])
}
