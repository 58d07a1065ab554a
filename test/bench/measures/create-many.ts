import { startMooring } from '../../support/deployment/mooring.ts'
import { finding, type Measure } from '../measure.ts'
import { metric } from '../metrics.ts'
import { summary, timed } from '../statistics.ts'
import { temporaryDirectory } from '../temporary-directory.ts'
import { UNLIMITED } from '../unlimited.ts'

const INSTANCES = 200
const AT_ONCE = 20

async function run() {
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
  run,
}
