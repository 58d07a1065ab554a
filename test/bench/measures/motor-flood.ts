import type { Motor } from '../../../crds/motor.ts'
import type { Instance } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { openMongodb, openMysql } from '../../support/families/family-client.ts'
import { type Finding, finding, type Measure } from '../measure.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'
import { quantile, timed } from '../statistics.ts'
import { post } from './motors.ts'

const MOTORS = ['mysql-8.0.29', 'mariadb-10.7.4', 'mongodb-5.0.9'] as const
const TENANTS = 50
const SECONDS = 15
/** Sessions that the flooding tenant asks for; the server may refuse some. */
const SESSIONS = 30
/** Tenants that ask at the same time. */
const AT_ONCE = 4

/** Session of a tenant, and its cheapest and its most expensive request. */
interface Session {
  readonly ping: () => Promise<unknown>
  readonly flood: () => Promise<unknown>
  readonly end: () => void
}

async function mysqlSession(instance: Instance): Promise<Session> {
  const session = await openMysql(instance)
  return {
    ping: () => session.query('SELECT 1'),
    flood: () => session.query("SELECT BENCHMARK(20000000, SHA2('flood', 512))"),
    end: () => session.destroy(),
  }
}

async function mongodbSession(instance: Instance): Promise<Session> {
  const client = await openMongodb(instance)
  const database = client.db(instance.name)
  const numbers = { $range: [0, 300_000] }
  return {
    ping: () => database.command({ ping: 1 }),
    async flood() {
      const pipeline = [{ $project: { sum: { $sum: { $map: { input: numbers, in: { $pow: ['$$this', 1.5] } } } } } }]
      await database.collection('items').updateOne({ _id: 1 as never }, { $set: { flood: true } }, { upsert: true })
      await database.collection('items').aggregate(pipeline).toArray()
    },
    end: () => void client.close(),
  }
}

const sessionOf = (motor: Motor) => (motor.startsWith('mongodb') ? mongodbSession : mysqlSession)

/** Asks all tenants in turn for some seconds, a few at a time. Returns the times in ms. */
async function ping(sessions: readonly Session[]): Promise<readonly number[]> {
  const times: number[] = []
  const end = performance.now() + SECONDS * 1_000
  let next = 0
  async function caller(): Promise<void> {
    while (performance.now() < end) {
      const session = sessions[next++ % sessions.length]
      if (session) times.push(await timed(session.ping))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
  return times
}

/** Opens sessions of the tenant, as many as the server admits, and keeps each busy until the signal aborts. */
async function flood(instance: Instance, open: (instance: Instance) => Promise<Session>, signal: AbortSignal): Promise<number> {
  const opened = await Promise.allSettled(Array.from({ length: SESSIONS }, () => open(instance)))
  const sessions = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  for (const session of sessions) {
    const work = async () => {
      while (!signal.aborted) await session.flood()
    }
    // The watchdog may end a session: the others go on.
    void work().catch(() => undefined)
    signal.addEventListener('abort', session.end, { once: true })
  }
  return sessions.length
}

async function runOn(mooring: Mooring, motor: Motor): Promise<readonly Finding[]> {
  const open = sessionOf(motor)
  const instances: Instance[] = []
  while (instances.length < TENANTS) instances.push(await post(mooring, motor))
  const [flooding, ...others] = instances
  if (!flooding) return []
  const ports = new Set(instances.map(({ port }) => port))
  const sessions = await Promise.all(others.map(open))
  const stop = new AbortController()
  try {
    const quiet = quantile(await ping(sessions), 0.99)
    const busy = await flood(flooding, open, stop.signal)
    const loud = quantile(await ping(sessions), 0.99)
    return [
      finding(`${motor}: servers of the ${TENANTS} tenants`, { value: ports.size, unit: '', digits: 0 }),
      finding(`${motor}: p99 of the others, quiet`, { value: quiet, unit: 'ms', digits: 2 }),
      finding(`${motor}: p99 of the others, ${busy} busy sessions of one tenant`, { value: loud, unit: 'ms', digits: 2 }),
      finding(`${motor}: ratio`, { value: loud / quiet, unit: '×', digits: 1 }, 10),
    ]
  } finally {
    stop.abort()
    for (const session of sessions) session.end()
  }
}

async function run(): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const motor of MOTORS) {
    await using dir = await temporaryDirectory()
    await using mooring = await startMooring({
      dataDir: dir.path,
      args: [...UNLIMITED, '--compatible-motors', '--warm', motor],
    })
    findings.push(...(await runOn(mooring, motor)))
  }
  return findings
}

export const motorFlood: Measure = {
  name: 'motor-flood',
  method: `${TENANTS} tenants on one server. ${AT_ONCE} at a time send SELECT 1 (MongoDB: ping) on open sessions for ${SECONDS} s, first alone, then while one tenant keeps up to ${SESSIONS} sessions busy with expensive statements.`,
  run,
}
