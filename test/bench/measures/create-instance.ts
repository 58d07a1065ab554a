import pg from 'pg'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { finding, type Measure } from '../measure.ts'
import { metric, until } from '../metrics.ts'
import { adminOf } from '../seed.ts'
import { quantile, ratio, summary, timed } from '../statistics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'

const ROUNDS = 300
const BLOCK = 30
const WARM_UP = 10
const POOL = 5
const MOTOR = 'postgresql-15.4.0'

/** Database created with SQL, as an administrator does: a login, and a database that it owns. */
interface ByHand extends AsyncDisposable {
  readonly create: () => Promise<void>
  readonly drop: () => Promise<void>
}

async function connectByHand(at: { host: string; port: number; user: string; password: string }): Promise<ByHand> {
  const client = new pg.Client({ ...at, database: 'postgres' })
  await client.connect()
  return {
    async create() {
      await client.query(`CREATE ROLE by_hand LOGIN PASSWORD 'a-password-of-24-letters'`)
      await client.query('CREATE DATABASE by_hand OWNER by_hand')
    },
    async drop() {
      await client.query('DROP DATABASE by_hand')
      await client.query('DROP ROLE by_hand')
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

async function post(mooring: Mooring): Promise<{ id: string; host: string; port: number }> {
  const body = { identifier: 'bench', region: mooring.ready.region, motor: MOTOR }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  if (answer.status !== 201) throw new Error(`POST was answered ${answer.status}: ${answer.body.msg}`)
  const { id, uri } = answer.body.data.instance
  const { hostname, port } = new URL(uri)
  return { id, host: hostname, port: Number(port) }
}

async function round(mooring: Mooring, byHand: ByHand, first: 'post' | 'hand'): Promise<{ post: number; hand: number }> {
  // The pool refills and old databases are dropped outside the timed parts, so that no side pays for the clean-up of the other.
  await until('the pool is full', async () => (await metric(mooring.ready.metricsUrl, 'mooring_pool_databases')) === POOL)
  let id = ''
  const posting = () => timed(async () => ({ id } = await post(mooring)))
  const sample =
    first === 'post'
      ? { post: await posting(), hand: await timed(byHand.create) }
      : { hand: await timed(byHand.create), post: await posting() }
  await byHand.drop()
  await mooring.call('DELETE', `/v1/instances/${id}`)
  return sample
}

async function run() {
  await using dir = await temporaryDirectory()
  // The first start creates the server and its admin password. The password is readable only while Mooring is stopped.
  await (await startMooring({ dataDir: dir.path }))[Symbol.asyncDispose]()
  const admin = await adminOf(dir.path)
  await using mooring = await startMooring({ dataDir: dir.path, args: [...UNLIMITED, '--warm-pool', String(POOL)] })
  const { id, host, port } = await post(mooring)
  await mooring.call('DELETE', `/v1/instances/${id}`)
  await using byHand = await connectByHand({ host, port, ...admin })
  for (let count = 0; count < WARM_UP; count++) await round(mooring, byHand, 'post')
  const samples: Awaited<ReturnType<typeof round>>[] = []
  for (let count = 0; count < ROUNDS; count++) samples.push(await round(mooring, byHand, count % 2 ? 'post' : 'hand'))

  const [posts, hands] = [samples.map((sample) => sample.post), samples.map((sample) => sample.hand)]
  const [mine, theirs, compared] = [summary(posts), summary(hands), ratio(posts, hands, BLOCK)]
  return [
    finding('POST, p10', { value: quantile(posts, 0.1), unit: 'ms' }),
    finding('POST, p50', { value: mine.median, unit: 'ms', spread: `MAD ${mine.mad.toFixed(1)}` }, 15),
    finding('POST, p99', { value: mine.p99, unit: 'ms' }, 60),
    finding('CREATE ROLE + CREATE DATABASE by hand, p50', {
      value: theirs.median,
      unit: 'ms',
      spread: `MAD ${theirs.mad.toFixed(1)}`,
    }),
    finding(
      'ratio of the medians',
      { value: compared.median, unit: '×', digits: 2, spread: `${compared.low.toFixed(2)}–${compared.high.toFixed(2)}` },
      0.5,
    ),
  ]
}

export const createInstance: Measure = {
  name: 'create-instance',
  method: `${ROUNDS} rounds on one server. Each round waits for a full pool. It then times, in alternating order, one POST /v1/instances over a keep-alive HTTPS connection, and CREATE ROLE and CREATE DATABASE with the server's defaults on an open connection of an administrator. Deletion of both is not timed. The ratio compares medians in blocks of ${BLOCK} rounds.`,
  run,
}

const INSTANCES = 200
const AT_ONCE = 20

async function runMany() {
  await using dir = await temporaryDirectory()
  await using mooring = await startMooring({ dataDir: dir.path, args: UNLIMITED })
  const body = { identifier: 'bench', region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  const times: number[] = []
  const refusals: string[] = []
  let asked = 0

  async function caller(): Promise<void> {
    while (asked < INSTANCES) {
      asked += 1
      const ms = await timed(async () => {
        const { status, body: answer } = await mooring.call('POST', '/v1/instances', { body })
        if (status !== 201) refusals.push(`${status} ${answer.msg}`)
      })
      times.push(ms)
    }
  }
  const total = await timed(() => Promise.all(Array.from({ length: AT_ONCE }, caller)))
  const servers = await metric(mooring.ready.metricsUrl, 'mooring_reconcile_total', 'reason="ServerAdded"')
  if (refusals.length > 0) console.error(`bench: ${[...new Set(refusals)].join('; ')}`)

  const { median, p99, mad } = summary(times)
  return [
    finding('responses other than 201', { value: refusals.length, unit: '', digits: 0 }, 0),
    finding('POST, p99', { value: p99 / 1_000, unit: 's', digits: 2 }, 2),
    finding('POST, p50', { value: median / 1_000, unit: 's', digits: 2, spread: `MAD ${(mad / 1_000).toFixed(2)}` }),
    finding('instances a second', { value: INSTANCES / (total / 1_000), unit: '' }),
    finding('servers of 50 that were started', { value: servers, unit: '', digits: 0 }),
  ]
}

export const createMany: Measure = {
  name: 'create-many',
  method: `${AT_ONCE} callers, each with its own connection, send POST requests until ${INSTANCES} instances exist. The run begins with one server and the default warm pool of 5. A server holds 50 instances, so Mooring starts more servers during the run. Flags raise quotas and rate limits.`,
  run: runMany,
}
