import { readFile } from 'node:fs/promises'
import { startMooring } from '../../support/deployment/mooring.ts'
import { visit } from '../../support/edge/visitor.ts'
import { finding, type Measure } from '../measure.ts'
import { summary } from '../statistics.ts'
import { temporaryDirectory, UNLIMITED } from '../setup.ts'

const ROUNDS = 100
const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

async function run() {
  await using dir = await temporaryDirectory()
  await using mooring = await startMooring({ dataDir: dir.path, args: UNLIMITED })
  // With it, the edge answers OPTIONS itself when it does not redirect.
  const config = { allowCorsPreflight: true }
  const made = await mooring.call('POST', TUNNELS, { body: { name: 'bench', regionId: mooring.ready.regionId, config } })
  const { tunnel } = made.body.data
  const { hostname } = tunnel
  const ca = await readFile(mooring.ready.ca, 'utf8')
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const httpsOnly = round % 2 === 0
    const start = performance.now()
    const patched = mooring.call('PATCH', `${TUNNELS}/${hostname}`, { body: { config: { httpsOnly } } })
    while (((await visit(ca, tunnel, '/', { scheme: 'http', method: 'OPTIONS' })).status === 301) !== httpsOnly) continue
    times.push(performance.now() - start)
    await patched
  }
  const { median, p99, mad } = summary(times)
  return [
    finding('PATCH sent to in force, p50', { value: median, unit: 'ms', spread: `MAD ${mad.toFixed(1)}` }, 100),
    finding('PATCH sent to in force, p99', { value: p99, unit: 'ms' }),
  ]
}

export const tunnelConfig: Measure = {
  name: 'tunnel-config',
  method: `An embedded Mooring with one tunnel. ${ROUNDS} PATCH requests turn httpsOnly on or off. After each, a visitor repeats a request over HTTP until the redirect appears or disappears. The time starts before the PATCH.`,
  run,
}
