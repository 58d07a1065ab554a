import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { finding, type Measure } from '../measure.ts'
import { npmStart } from '../npm-start.ts'
import { summary } from '../statistics.ts'
import { temporaryDirectory } from '../temporary-directory.ts'

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
