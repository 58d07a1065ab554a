import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { finding, type Measure } from '../measure.ts'
import { memoryMb, cpuSeconds } from '../usage.ts'
import { temporaryDirectory } from '../setup.ts'
import { startPair } from '../tunnel/pair.ts'
import { type Load, wrk } from '../tunnel/rounds.ts'
import { logIn, type LoggedIn } from '../../support/edge/ssh2-client.ts'
import { startWholeEdge } from '../../support/edge/whole-edge.ts'

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

const TUNNELS = 5_000
const AT_ONCE = 16
const KB = 1_000
/** Long enough for two keep-alives of each tunnel. */
const WATCHED_MS = 20_000

async function runIdle() {
  await using edge = await startWholeEdge({ ssh: { handshakesPerSource: 1_000 } })
  const clients: LoggedIn[] = []
  const connect = async () => {
    const client = await logIn(edge)
    await client.serve((channel) => channel.end())
    clients.push(client)
  }
  // The first sessions also load code and fill caches. They are not counted.
  await Promise.all(Array.from({ length: AT_ONCE }, connect))
  const before = await edge.usage()
  const start = performance.now()
  const cpuAtStart = await cpuSeconds(edge.pid)
  while (clients.length < TUNNELS) await Promise.all(Array.from({ length: AT_ONCE }, connect))
  const seconds = (performance.now() - start) / 1_000
  const connected = (await cpuSeconds(edge.pid)) - cpuAtStart
  const after = await edge.usage()
  const made = after.sessions - before.sessions
  const cpu = await cpuSeconds(edge.pid)
  await delay(WATCHED_MS)
  const idle = (((await cpuSeconds(edge.pid)) - cpu) / (WATCHED_MS / 1_000)) * 100
  for (const client of clients) client[Symbol.dispose]()
  const each = (bytes: number) => ({ value: bytes / made / KB, unit: 'KB' })
  return [
    finding('memory of an idle tunnel (resident)', each(after.rss - before.rss), 40),
    finding('of that, objects and buffers', each(after.heap + after.buffers - before.heap - before.buffers)),
    finding('tunnels', { value: after.sessions, unit: '', digits: 0 }),
    finding('processor time a login', {
      value: (connected / made) * 1_000,
      unit: 'ms',
      digits: 2,
      spread: `${(made / seconds).toFixed(0)} a second, clients included`,
    }),
    finding('processor time of the edge while all are idle', { value: idle, unit: '%' }),
  ]
}

export const tunnelIdle: Measure = {
  name: 'tunnel-idle',
  method: `${TUNNELS} tunnels on one edge, each with one client (ssh2, in the process that measures). Memory of the edge after a garbage collection is compared before and after their logins, and divided by their number. Then the processor time of ${WATCHED_MS / 1_000} s is measured.`,
  run: runIdle,
}
