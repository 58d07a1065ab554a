import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import { finding, type Measure } from '../measure.ts'
import { npmStart, temporaryDirectory, UNLIMITED } from '../setup.ts'
import { summary } from '../statistics.ts'
import { startMooring } from '../../support/deployment/mooring.ts'
import { cpuSeconds, descendants, descendantsCpuSeconds, memoryMb } from '../usage.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const WARM_ROUNDS = 10
const COLD_ROUNDS = 3
const execute = promisify(execFile)

function seconds(what: string, samples: readonly number[], limit: number) {
  const { median, mad } = summary(samples)
  const spread = `MAD ${mad.toFixed(2)}, worst ${Math.max(...samples).toFixed(2)}`
  return finding(what, { value: median, unit: 's', digits: 2, spread }, limit)
}

async function runWarm() {
  const first: number[] = []
  const later: number[] = []
  for (let round = 0; round < WARM_ROUNDS; round++) {
    await using dir = await temporaryDirectory()
    first.push(await npmStart({ directory: ROOT, dataDir: dir.path }))
    later.push(await npmStart({ directory: ROOT, dataDir: dir.path }))
  }
  return [
    seconds('npm start to ready, data directory as left', later, 5),
    seconds('npm start to ready, no data directory', first, 5),
  ]
}

export const warmStart: Measure = {
  name: 'warm-start',
  method: `${WARM_ROUNDS} rounds of \`npm start\` in an installed clone, as from a shell, until it prints that it is ready. Each round starts twice: with a new data directory, which creates a database server and the first database of its warm pool, and then again with the same directory.`,
  run: runWarm,
}

async function runCold() {
  const samples: number[] = []
  for (let round = 0; round < COLD_ROUNDS; round++) {
    await using dir = await temporaryDirectory()
    const clone = join(dir.path, 'clone')
    await execute('git', ['clone', '--quiet', '--no-hardlinks', ROOT, clone])
    const env = { npm_config_cache: join(dir.path, 'npm-cache') }
    samples.push(await npmStart({ directory: clone, dataDir: join(dir.path, 'data'), env }))
  }
  return [seconds('npm start to ready on a bare clone', samples, 60)]
}

export const coldStart: Measure = {
  name: 'cold-start',
  method: `${COLD_ROUNDS} rounds: a new clone of the committed state, an empty npm cache, and \`npm start\` with the machine's Node and npm, until it prints that it is ready. Packages are downloaded from the configured registry.`,
  run: runCold,
}

const INSTANCES = 20
/** Time in which the pool refills, and the garbage of the setup is collected. */
const REST_MS = 20_000
/** Longer than each periodic task: statements are checked every 5 s, sizes and catalogs every 60 s. */
const WATCHED_MS = 120_000

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

async function runIdle() {
  await using dir = await temporaryDirectory()
  await using mooring = await startMooring({ dataDir: dir.path, args: UNLIMITED })
  const body = { identifier: 'bench', region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  for (let count = 0; count < INSTANCES; count++) await mooring.call('POST', '/v1/instances', { body })
  await delay(REST_MS)

  const pid = mooring.process.pid ?? 0
  const used = async () => [await cpuSeconds(pid), await descendantsCpuSeconds(pid)] as const
  const before = await used()
  await delay(WATCHED_MS)
  const after = await used()
  const percent = (index: 0 | 1) => ((after[index] - before[index]) / (WATCHED_MS / 1_000)) * 100
  const engines = await descendants(pid)
  const engineMemory = sum(await Promise.all(engines.map((engine) => memoryMb(engine, 'Pss'))))
  return [
    finding('memory of our process (RSS)', { value: await memoryMb(pid, 'Rss'), unit: 'MB', digits: 0 }, 200),
    finding('processor time of our process', { value: percent(0), unit: '%', digits: 2 }, 1),
    finding('memory of the database server (PSS)', { value: engineMemory, unit: 'MB', digits: 0 }),
    finding('processor time of the database server', { value: percent(1), unit: '%', digits: 2 }),
  ]
}

export const idle: Measure = {
  name: 'idle',
  method: `One server has ${INSTANCES} instances, created through the API. After ${REST_MS / 1_000} s of rest, /proc gives the processor time of ${WATCHED_MS / 1_000} s, as a share of one core, and the memory at the end. The database server is counted separately, with all its sessions.`,
  run: runIdle,
}
