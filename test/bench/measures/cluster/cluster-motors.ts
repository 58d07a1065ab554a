import { type Motor, partsOf } from '../../../../crds/motor.ts'
import { expectSuccess } from '../../../support/api/tenant.ts'
import { type BenchCluster, benchCluster } from '../../cluster.ts'
import { type Finding, finding, type Measure } from '../../measure.ts'
import { quantile, summary, timed } from '../../statistics.ts'

const MOTORS = ['mysql-5.7.38', 'mysql-8.0.29', 'mariadb-10.7.4', 'mongodb-5.0.9', 'mongodb-7.0.2'] as const
const ROUNDS = 100
const WARM_UP = 10

/** Maximum p50 of a POST, in ms. */
const limitOf = (motor: Motor): number => (partsOf(motor).family === 'mongodb' ? 60 : 50)

/** Measures POSTs of one motor while an instance of it keeps the server running. */
async function runOn({ tenant, installation }: BenchCluster, motor: Motor): Promise<readonly Finding[]> {
  const editor = tenant.as('editor')
  const body = { identifier: 'bench', region: installation.region.id, motor }
  const kept = await tenant.instance({ motor })
  const times: number[] = []
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    let id = ''
    times.push(
      await timed(async () => ({ id } = (await expectSuccess(editor('POST', '/v1/instances', { body }))).body.data.instance)),
    )
    await expectSuccess(editor('DELETE', `/v1/instances/${id}`))
  }
  await expectSuccess(editor('DELETE', `/v1/instances/${kept.id}`))
  const measured = times.slice(WARM_UP)
  const { median, mad, p99 } = summary(measured)
  return [
    finding(`${motor}: POST, p10`, { value: quantile(measured, 0.1), unit: 'ms' }),
    finding(`${motor}: POST, p50`, { value: median, unit: 'ms', spread: `MAD ${mad.toFixed(1)}` }, limitOf(motor)),
    finding(`${motor}: POST, p99`, { value: p99, unit: 'ms' }),
  ]
}

async function run(): Promise<readonly Finding[]> {
  await using bench = await benchCluster()
  const findings: Finding[] = []
  for (const motor of MOTORS) findings.push(...(await runOn(bench, motor)))
  return findings
}

export const clusterMotors: Measure = {
  name: 'cluster-motors',
  method: `${ROUNDS} POST /v1/instances of each motor over a keep-alive HTTPS connection to a node's port, one after the other, while another instance keeps the motor's server running. The deletion after each is not timed. Servers are the suite's stand-ins of the official images.`,
  run,
}
