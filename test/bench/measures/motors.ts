import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Family, type Motor, partsOf } from '../../../crds/motor.ts'
import { readRecords } from '../../../operator/server/process/files/paths.ts'
import type { Instance } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { startMongod } from '../../support/mongodb/mongod.ts'
import { type MysqlMotor, startMysql } from '../../support/mysql/server.ts'
import { type Finding, finding, type Measure } from '../measure.ts'
import { until } from '../metrics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'
import { ratio, summary, timed } from '../statistics.ts'
import { memoryMb } from '../usage.ts'

const ROUNDS = 200
const BLOCK = 20
const WARM_UP = 10

/** Motors whose servers `npm run engines` installs, by family. */
const MOTORS = ['mysql-5.7.38', 'mysql-8.0.29', 'mariadb-10.7.4', 'mongodb-5.0.9', 'mongodb-7.0.2'] as const
const ONE_OF_EACH = ['mysql-8.0.29', 'mariadb-10.7.4', 'mongodb-5.0.9'] as const
type InstalledMotor = (typeof MOTORS)[number]

/** Server with the options of Mooring's, started by a program of its own, and what an administrator does on it. */
interface ByHand extends AsyncDisposable {
  readonly pid: () => Promise<number>
  readonly create: () => Promise<unknown>
  readonly drop: () => Promise<unknown>
}

const PASSWORD = 'a-password-of-24-letters'

async function mysqlByHand(motor: MysqlMotor): Promise<ByHand> {
  const server = await startMysql(motor)
  const client = await server.client()
  return {
    pid: async () => pidIn(join(server.data, '../..')),
    async create() {
      await client.query('CREATE DATABASE byhand')
      await client.query(`CREATE USER 'byhand'@'%' IDENTIFIED BY '${PASSWORD}'`)
      await client.query("GRANT ALL PRIVILEGES ON byhand.* TO 'byhand'@'%'")
      // A POST logs in, too, before it responds.
      const tenant = await server.client({ user: 'byhand', password: PASSWORD, database: 'byhand' })
      tenant.destroy()
    },
    async drop() {
      await client.query('DROP DATABASE byhand')
      await client.query("DROP USER 'byhand'@'%'")
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function mongodbByHand(series: '5.0' | '7.0'): Promise<ByHand> {
  const server = await startMongod(series)
  const database = (await server.client()).db('byhand')
  const roles = ['readWrite', 'dbAdmin'].map((role) => ({ role, db: 'byhand' }))
  return {
    pid: () => Promise.resolve(server.pid()),
    create: () => database.command({ createUser: 'byhand', pwd: PASSWORD, roles }),
    drop: () => database.command({ dropUser: 'byhand' }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function byHandOf(motor: InstalledMotor): Promise<ByHand> {
  if (motor === 'mongodb-5.0.9') return mongodbByHand('5.0')
  return motor === 'mongodb-7.0.2' ? mongodbByHand('7.0') : mysqlByHand(motor)
}

/** Pid of the only server below a directory. */
async function pidIn(servers: string, id = ''): Promise<number> {
  const records = [...(await readRecords(servers)).values()]
  const pid = records.find(({ binaries }) => binaries.startsWith(id))?.process?.pid
  if (pid === undefined) throw new Error(`no server runs below ${servers}: ${(await readdir(servers)).join(', ')}`)
  return pid
}

interface Start {
  readonly motor: Motor
  readonly dataDir: string
  /** Whether the motor's server runs before the first request. */
  readonly warm: boolean
  readonly capacity?: number
}

/** Capacity of {@link startMysql} and {@link startMongod}, on which options of the servers depend. */
const capacityOf = (motor: Motor): number => (partsOf(motor).family === 'mongodb' ? 50 : 20)

function start({ motor, dataDir, warm, capacity = 50 }: Start): Promise<Mooring> {
  const args = [
    ...UNLIMITED,
    '--compatible-motors',
    '--server-capacity',
    `${capacity}`,
    '--mongodb-server-capacity',
    `${capacity}`,
    ...(warm ? ['--warm', motor] : []),
  ]
  return startMooring({ dataDir, args })
}

export async function post(mooring: Mooring, motor: Motor): Promise<Instance> {
  const body = { identifier: 'bench', region: mooring.ready.region, motor }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  if (answer.status !== 201) throw new Error(`POST was answered ${answer.status}: ${answer.body.msg}`)
  return answer.body.data.instance
}

interface Sample {
  readonly post: number
  readonly hand: number
}

async function round(mooring: Mooring, motor: Motor, byHand: ByHand): Promise<Sample> {
  let id = ''
  const sample = {
    post: await timed(async () => ({ id } = await post(mooring, motor))),
    hand: await timed(byHand.create),
  }
  await byHand.drop()
  await mooring.call('DELETE', `/v1/instances/${id}`)
  return sample
}

/** Targets of a POST against the same by hand: MongoDB at most as long, the others at most 10 ms longer. */
function compared(motor: Motor, samples: readonly Sample[]): Finding {
  const [posts, hands] = [samples.map((sample) => sample.post), samples.map((sample) => sample.hand)]
  const family: Family = partsOf(motor).family
  if (family === 'mongodb') {
    const { median, low, high } = ratio(posts, hands, BLOCK)
    return finding(`${motor}: ratio`, { value: median, unit: '×', digits: 2, spread: `${low.toFixed(2)}–${high.toFixed(2)}` }, 1)
  }
  return finding(`${motor}: difference`, { value: summary(posts).median - summary(hands).median, unit: 'ms' }, 10)
}

async function runCreate(): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const motor of MOTORS) {
    await using dir = await temporaryDirectory()
    await using mooring = await start({ motor, dataDir: dir.path, warm: true, capacity: capacityOf(motor) })
    await using byHand = await byHandOf(motor)
    for (let count = 0; count < WARM_UP; count++) await round(mooring, motor, byHand)
    const samples: Sample[] = []
    for (let count = 0; count < ROUNDS; count++) samples.push(await round(mooring, motor, byHand))
    for (const side of ['post', 'hand'] as const) {
      const { median, mad } = summary(samples.map((sample) => sample[side]))
      findings.push(
        finding(`${motor}: ${side === 'post' ? 'POST' : 'by hand'}, p50`, {
          value: median,
          unit: 'ms',
          spread: `MAD ${mad.toFixed(1)}`,
        }),
      )
    }
    findings.push(compared(motor, samples))
  }
  return findings
}

export const createMotors: Measure = {
  name: 'create-motors',
  method: `For each motor, ${ROUNDS} rounds of one POST /v1/instances on a warm server, and of the same by hand (database, user, grant and first login; for MongoDB a user with its roles) on a second server with the same options. Deletion is not timed.`,
  run: runCreate,
}

async function runCold(): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const motor of MOTORS) {
    await using dir = await temporaryDirectory()
    await using mooring = await start({ motor, dataDir: dir.path, warm: false })
    const ms = await timed(() => post(mooring, motor))
    findings.push(finding(`${motor}: first POST`, { value: ms / 1_000, unit: 's', digits: 2 }, 6))
  }
  return findings
}

export const coldMotors: Measure = {
  name: 'cold-motors',
  method:
    'For each motor, the first POST /v1/instances on a new data directory, without a data directory to copy: the server is created and started meanwhile.',
  run: runCold,
}

const IDLE_S = 30

async function runMemory(): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const motor of ONE_OF_EACH) {
    await using dir = await temporaryDirectory()
    await using mooring = await start({ motor, dataDir: dir.path, warm: true, capacity: capacityOf(motor) })
    await using byHand = await byHandOf(motor)
    const servers = join(dir.path, 'servers')
    const ready = async () =>
      (await mooring.call('GET', '/v1/regions')).status === 200 && (await pidIn(servers, partsOf(motor).family)) > 0
    await until('the server runs', () => ready().catch(() => false))
    await new Promise((resolve) => setTimeout(resolve, IDLE_S * 1_000))
    const mine = await memoryMb(await pidIn(servers, partsOf(motor).family), 'Pss')
    const theirs = await memoryMb(await byHand.pid(), 'Pss')
    findings.push(
      finding(`${motor}: server of Mooring`, { value: mine, unit: 'MB' }),
      finding(`${motor}: by hand`, { value: theirs, unit: 'MB' }),
      finding(`${motor}: ratio`, { value: mine / theirs, unit: '×', digits: 2 }, 1.1),
    )
  }
  return findings
}

export const motorMemory: Measure = {
  name: 'motor-memory',
  method: `Proportional memory of a warm server without instances, and of a server with the same options without clients, ${IDLE_S} s after both have started.`,
  run: runMemory,
}
