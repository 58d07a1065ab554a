import { setTimeout as delay } from 'node:timers/promises'
import { logIn, type LoggedIn } from '../../support/edge/ssh2-client.ts'
import { startWholeEdge } from '../../support/edge/whole-edge.ts'
import { finding, type Measure } from '../measure.ts'
import { cpuSeconds } from '../process-usage.ts'

const TUNNELS = 5_000
const AT_ONCE = 16
const KB = 1_000
/** Long enough for two keep-alives of each tunnel. */
const WATCHED_MS = 20_000

async function run() {
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
  run,
}
