import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { finding, type Measure } from '../measure.ts'
import { memoryMb } from '../process-usage.ts'
import { temporaryDirectory } from '../temporary-directory.ts'
import { startPair } from '../tunnel/pair.ts'
import { type Load, wrk } from '../tunnel/wrk.ts'

const SECONDS = 60
const AFTER_MS = 60_000
const CONNECTIONS = 64

/** Returns a Lua script for wrk with a different head for each request. */
const differing = (host: string): string => `
local count = 0
request = function()
  count = count + 1
  return wrk.format('GET', '/' .. count, { ['Host'] = '${host}', ['X-Random'] = tostring(math.random(1000000000)) })
end
`

async function run() {
  await using directory = await temporaryDirectory()
  await using pair = await startPair()
  const script = join(directory.path, 'differing.lua')
  await writeFile(script, differing(pair.edge.hosts[0] ?? ''))
  const memory = () => memoryMb(pair.wholeEdge.pid, 'Rss')
  const load = { connections: CONNECTIONS, seconds: SECONDS }
  const loads: readonly (readonly [string, Load])[] = [
    ['heads that are the same', load],
    ['heads that differ', { ...load, script }],
    ['a new connection for each request', { ...load, closes: true }],
  ]
  const before = await memory()
  const findings = [finding('before', { value: before, unit: 'MB', digits: 0 })]
  for (const [what, of] of loads) {
    await wrk(pair.edge, of)
    findings.push(finding(`at the end of ${SECONDS} s of ${what}`, { value: await memory(), unit: 'MB', digits: 0 }))
  }
  await delay(AFTER_MS)
  const after = await memory()
  return [...findings, finding('a minute after load, against before', { value: after / before, unit: '×', digits: 2 }, 1.3)]
}

export const tunnelMemory: Measure = {
  name: 'tunnel-memory',
  method: `Resident memory of one edge before, during and after three kinds of load, one after the other, of ${SECONDS} s each. wrk creates the load with ${CONNECTIONS} connections.`,
  run,
}
