import { finding, type Measure } from '../measure.ts'
import { startPair } from '../tunnel/pair.ts'
import { atLeast, beside, compared, each, rounds, sample } from '../tunnel/rounds.ts'

const ROUNDS = 9
const BLOCK = 3
const SECONDS = 4
const CONNECTIONS = 64
const TUNNELS = 8

async function run() {
  await using pair = await startPair()
  const taken = await rounds([pair.edge, pair.peer], ROUNDS, (side) =>
    sample(side, { connections: CONNECTIONS, seconds: SECONDS }),
  )
  const rates = each(taken, ({ perSecond }) => perSecond)
  const cpu = each(taken, ({ cpuMicroseconds }) => cpuMicroseconds)
  const p99 = each(taken, (one) => one.p99)
  return [
    atLeast('requests a second against sshd + nginx', compared(rates, BLOCK), 2),
    finding('processor time a request against sshd + nginx', compared(cpu, BLOCK), 0.55),
    finding('p99 against sshd + nginx', compared(p99, BLOCK), 0.2),
    finding('p99', beside(p99, 'ms', 2)),
    finding('requests a second', beside(rates, '', 0)),
    finding('processor time a request', beside(cpu, 'µs')),
    finding(
      'p50',
      beside(
        each(taken, (one) => one.p50),
        'ms',
        2,
      ),
    ),
  ]
}

export const tunnelRequests: Measure = {
  name: 'tunnel-requests',
  method: `One tunnel by OpenSSH's client to an nginx that answers 27 bytes, once through an edge (in a process of its own, with its journal on disk and its metrics) and once through OpenSSH's server with nginx before it, which keeps its connections: ${ROUNDS} rounds in turn of ${SECONDS} s of wrk, one thread and ${CONNECTIONS} connections. Processor time is that of the edge, and of sshd and the nginx before it, out of /proc. Ratios are of medians in blocks of ${BLOCK} rounds.`,
  run,
}

async function runMany() {
  await using pair = await startPair(TUNNELS)
  const taken = await rounds([pair.edge, pair.peer], ROUNDS, async (side) => {
    const before = await side.cpu()
    const loads = side.hosts.map((host) => sample(side, { connections: CONNECTIONS / TUNNELS, seconds: SECONDS, host }))
    const all = await Promise.all(loads)
    const requests = all.reduce((sum, { requests }) => sum + requests, 0)
    return {
      perSecond: all.reduce((sum, { perSecond }) => sum + perSecond, 0),
      cpuMicroseconds: (((await side.cpu()) - before) / requests) * 1e6,
    }
  })
  const rates = each(taken, ({ perSecond }) => perSecond)
  const cpu = each(taken, ({ cpuMicroseconds }) => cpuMicroseconds)
  return [
    atLeast('requests a second against sshd + nginx', compared(rates, BLOCK), 1.6),
    finding('processor time a request against sshd + nginx', compared(cpu, BLOCK), 0.5),
    finding('requests a second', beside(rates, '', 0)),
    finding('processor time a request', beside(cpu, 'µs')),
  ]
}

export const tunnelMany: Measure = {
  name: 'tunnel-many',
  method: `The same with ${TUNNELS} tunnels, each by a client of its own, and a wrk of ${CONNECTIONS / TUNNELS} connections for each, all at once.`,
  run: runMany,
}

async function runConnections() {
  await using pair = await startPair()
  const taken = await rounds([pair.edge, pair.peer], ROUNDS, (side) =>
    sample(side, { connections: CONNECTIONS, seconds: SECONDS, closes: true }),
  )
  const rates = each(taken, ({ perSecond }) => perSecond)
  const cpu = each(taken, ({ cpuMicroseconds }) => cpuMicroseconds)
  return [
    atLeast('requests a second against sshd + nginx', compared(rates, BLOCK), 1),
    finding('processor time a request against sshd + nginx', compared(cpu, BLOCK), 1.5),
    finding('requests a second', beside(rates, '', 0)),
    finding('processor time a request', beside(cpu, 'µs')),
  ]
}

export const tunnelConnections: Measure = {
  name: 'tunnel-connections',
  method: 'The tunnel of tunnel-requests with a new connection of the visitor for each request (Connection: close).',
  run: runConnections,
}
