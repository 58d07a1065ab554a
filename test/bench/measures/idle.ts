import { setTimeout as delay } from 'node:timers/promises'
import { startMooring } from '../../support/deployment/mooring.ts'
import { finding, type Measure } from '../measure.ts'
import { cpuSeconds, descendants, descendantsCpuSeconds, memoryMb } from '../process-usage.ts'
import { temporaryDirectory } from '../temporary-directory.ts'
import { UNLIMITED } from '../unlimited.ts'

const INSTANCES = 20
/** Time in which the pool refills, and the garbage of the setup is collected. */
const REST_MS = 20_000
/** Longer than each periodic task: statements are checked every 5 s, sizes and catalogs every 60 s. */
const WATCHED_MS = 120_000

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

async function run() {
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
  run,
}
