import type { Motor } from '../../../crds/motor.ts'
import type { Answer } from '../../support/api/answers.ts'
import { databasePath } from '../../support/api/databases.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { type Finding, finding, type Measure } from '../measure.ts'
import { until } from '../metrics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'
import { summary, timed } from '../statistics.ts'

const ROUNDS = 5
const MOTORS = ['postgresql-15.4.0', 'mysql-8.0.29', 'mariadb-10.7.4', 'mongodb-7.0.2'] as const satisfies readonly Motor[]
/** Target for PostgreSQL, and for a change of the firewall at every motor, in seconds. */
const LIMIT_S = 3
const POLL = { everyMs: 20 }

/** Calls the dedicated API over plain HTTP. @throws Error with the message of an error response, unless its status is expected */
export async function call(
  { ready }: Pick<Mooring, 'ready'>,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer['body']> {
  const headers = { Authorization: `Bearer ${ready.token}`, 'Content-Type': 'application/json' }
  const body = options.body === undefined ? null : JSON.stringify(options.body)
  const response = await fetch(`${ready.dedicatedHttpUrl ?? ''}${path}`, { method, headers, body })
  const answer = (await response.json()) as Answer['body']
  if (!response.ok && response.status !== options.except) throw new Error(`${method} ${path}: ${answer.msg}`)
  return answer
}

interface CallOptions {
  readonly body?: object
  /** Status of an error that is no failure. */
  readonly except?: number
}

async function run(): Promise<readonly Finding[]> {
  await using dir = await temporaryDirectory()
  await using mooring = await startMooring({ dataDir: dir.path, args: [...UNLIMITED, '--compatible-motors'] })
  const { region } = mooring.ready
  const findings: Finding[] = []
  for (const engine of MOTORS) {
    const [created, changed]: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      const body = { name: `bench-${round}`, organization: 'default', namespace: 'default', engine, region, plan: 'small' }
      let path = ''
      const isRunning = async () => (await call(mooring, 'GET', path)).data.database.status === 'running'
      created.push(
        await timed(async () => {
          path = databasePath((await call(mooring, 'POST', '/v1/databases', { body })).data.database)
          await until('running', isRunning, POLL)
        }),
      )
      changed.push(
        await timed(async () => {
          await call(mooring, 'PATCH', path, { body: { firewallRules: [{ cidr: '127.0.0.1/32' }] } })
          await until('the rules are in force', isRunning, POLL)
        }),
      )
      await call(mooring, 'DELETE', path)
      await until('deleted', async () => (await call(mooring, 'GET', path, { except: 404 })).msg !== 'OK', POLL)
    }
    const [first, change] = [summary(created), summary(changed)]
    const isTarget = engine === 'postgresql-15.4.0'
    findings.push(
      finding(
        `${engine}: POST to running, p50`,
        { value: first.median / 1_000, unit: 's', digits: 2, spread: `MAD ${(first.mad / 1_000).toFixed(2)}` },
        isTarget ? LIMIT_S : undefined,
      ),
      finding(
        `${engine}: change of the firewall to running, p50`,
        { value: change.median / 1_000, unit: 's', digits: 2, spread: `MAD ${(change.mad / 1_000).toFixed(2)}` },
        LIMIT_S,
      ),
    )
  }
  return findings
}

export const dedicatedCreate: Measure = {
  name: 'dedicated',
  method: `Embedded mode, ${ROUNDS} rounds a motor: POST of a dedicated database until its status is running, then a PATCH of its firewall rules until it is running again, by polls every ${POLL.everyMs} ms. Servers of MySQL, MariaDB and MongoDB are those of \`npm run engines\`.`,
  run,
}
