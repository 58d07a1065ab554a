import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { finding, type Measure } from '../measure.ts'
import { startPair, type Side } from '../tunnel/pair.ts'
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
  method: `One tunnel of OpenSSH's client to an nginx that responds with 27 bytes, on two sides. One side is an edge in its own process, with metrics and its journal on disk. The other is OpenSSH's server behind an nginx with keep-alive connections. wrk runs ${ROUNDS} rounds of ${SECONDS} s on each side, in turn, with one thread and ${CONNECTIONS} connections. /proc gives the processor time of the edge, and of sshd with the nginx in front of it. Ratios compare medians in blocks of ${BLOCK} rounds.`,
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
  method: `As tunnel-requests, with ${TUNNELS} tunnels at the same time. Each tunnel has its own client, and its own wrk with ${CONNECTIONS / TUNNELS} connections.`,
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
  method: 'The tunnel of tunnel-requests. Each request of a visitor uses a new connection (Connection: close).',
  run: runConnections,
}

const execute = promisify(execFile)

/** Runs h2load over HTTP/1.1. It sends the tunnel's name as SNI, which wrk cannot. */
async function loadTls(side: Side): Promise<{ perSecond: number; cpuMicroseconds: number }> {
  const before = await side.cpu()
  const to = ['--connect-to', `127.0.0.1:${side.httpsPort}`]
  const args = ['--h1', '-t', '1', '-c', String(CONNECTIONS), '-D', String(SECONDS), ...to, `https://${side.hosts[0] ?? ''}/`]
  const { stdout } = await execute('h2load', args)
  const [, perSecond = '0'] = /finished in [\d.]+m?s, ([\d.]+) req\/s/.exec(stdout) ?? []
  const [, succeeded = '0', failed = '0'] = /(\d+) succeeded, (\d+) failed/.exec(stdout) ?? []
  if (failed !== '0' || succeeded === '0') throw new Error(`${side.name} failed: ${stdout}`)
  return { perSecond: Number(perSecond), cpuMicroseconds: (((await side.cpu()) - before) / Number(succeeded)) * 1e6 }
}

async function runHttps() {
  await using pair = await startPair()
  const taken = await rounds([pair.edge, pair.peer], ROUNDS, loadTls)
  const rates = each(taken, ({ perSecond }) => perSecond)
  const cpu = each(taken, ({ cpuMicroseconds }) => cpuMicroseconds)
  return [
    atLeast('HTTPS requests a second against sshd + nginx with TLS', compared(rates, BLOCK), 1.5),
    finding('processor time a request against sshd + nginx with TLS', compared(cpu, BLOCK), 0.7),
    finding('requests a second', beside(rates, '', 0)),
    finding('processor time a request', beside(cpu, 'µs')),
  ]
}

export const tunnelHttps: Measure = {
  name: 'tunnel-https',
  method: `The tunnel of tunnel-requests over TLS with an ECDSA certificate on P-256, HTTP/1.1 and keep-alive connections: ${ROUNDS} rounds of ${SECONDS} s on each side, in turn, of h2load with ${CONNECTIONS} connections.`,
  run: runHttps,
}

const START_ROUNDS = 21
const START_BLOCK = 7

async function runStart() {
  await using pair = await startPair()
  const times = await rounds([pair.edge, pair.peer], START_ROUNDS, (side) => side.connectAnew())
  return [
    finding('ssh started to the first 200', beside(times, 'ms'), 40),
    finding('against sshd + nginx', compared(times, START_BLOCK), 0.4),
  ]
}

export const tunnelStart: Measure = {
  name: 'tunnel-start',
  method: `${START_ROUNDS} times on each side, in turn: OpenSSH's client starts, and a visitor repeats a request, one millisecond after each response, until the tunnel responds with 200. The time includes the start of the client process.`,
  run: runStart,
}
