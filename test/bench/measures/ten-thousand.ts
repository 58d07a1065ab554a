import { setTimeout as delay } from 'node:timers/promises'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { finding, type Measure } from '../measure.ts'
import { metric, until } from '../metrics.ts'
import { memoryMb } from '../usage.ts'
import { copyInstance, enterDatabases, adminOf } from '../seed.ts'
import { summary, timed } from '../statistics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'

const INSTANCES = 10_000
const PAGES = 200
const REST_MS = 10_000
/** Long enough for at least one sweep of sizes and catalogs. */
const WATCHED_MS = 75_000

/** Creates ten thousand instances in the data directory. Mooring is stopped before and after. */
async function seed(dataDir: string): Promise<void> {
  const model = { id: '', name: '', host: '', port: 0 }
  {
    await using mooring = await startMooring({ dataDir, args: UNLIMITED })
    const body = { identifier: 'model', region: mooring.ready.region, motor: 'postgresql-15.4.0' }
    const { instance } = (await mooring.call('POST', '/v1/instances', { body })).body.data
    const { hostname, port } = new URL(instance.uri)
    Object.assign(model, { id: instance.id, name: instance.name, host: hostname, port: Number(port) })
  }
  const names = await copyInstance(dataDir, INSTANCES)
  const admin = await adminOf(dataDir)
  await using mooring = await startMooring({ dataDir, args: UNLIMITED })
  await enterDatabases({ host: model.host, port: model.port, ...admin }, model.name, names)
  await settled(mooring)
}

const reconciles = (mooring: Mooring): Promise<number> => metric(mooring.ready.metricsUrl, 'mooring_reconcile_total')

/** Resolves when every instance was reconciled and all queues are empty. */
async function settled({ ready: { metricsUrl } }: Mooring): Promise<void> {
  await until('all instances are settled', async () => {
    const done = await metric(
      metricsUrl,
      'mooring_reconcile_total',
      'controller="shared-instance",result="settled",reason="Claimed"',
    )
    return done >= INSTANCES && (await metric(metricsUrl, 'mooring_queue_depth')) === 0
  })
}

async function run() {
  await using dir = await temporaryDirectory()
  await seed(dir.path)

  const start = performance.now()
  await using mooring = await startMooring({ dataDir: dir.path, args: UNLIMITED })
  const readyMs = performance.now() - start
  await settled(mooring)
  const settledMs = performance.now() - start

  const pages: number[] = []
  for (let count = 0; count < PAGES; count++) pages.push(await timed(() => mooring.call('GET', '/v1/instances')))
  await delay(REST_MS)
  const before = await reconciles(mooring)
  await delay(WATCHED_MS)
  const work = (await reconciles(mooring)) - before

  const { median, p99, mad } = summary(pages)
  return [
    finding('list page of 50, p50', { value: median, unit: 'ms', spread: `MAD ${mad.toFixed(1)}` }, 50),
    finding('list page of 50, p99', { value: p99, unit: 'ms' }),
    finding('restart to ready', { value: readyMs / 1_000, unit: 's' }),
    finding('restart to settled', { value: settledMs / 1_000, unit: 's' }, 30),
    finding(`reconciles in ${WATCHED_MS / 1_000} s without a change`, { value: work, unit: '', digits: 0 }, 0),
    finding('memory of our process (RSS)', { value: await memoryMb(mooring.process.pid ?? 0, 'Rss'), unit: 'MB', digits: 0 }),
  ]
}

export const tenThousand: Measure = {
  name: 'ten-thousand',
  method: `One instance is created through the API, and copied in the store, with its Secret and settled status, until ${INSTANCES} exist. The databases and logins of the copies are entered into the catalog of the server as rows without files. Then Mooring starts. It is settled when each instance was reconciled and all queues are empty. ${PAGES} list pages are requested over a keep-alive HTTPS connection. A metric counts the reconciles of all controllers while nothing changes, for longer than a sweep of the catalogs takes.`,
  run,
}
