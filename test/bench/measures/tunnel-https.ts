import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { finding, type Measure } from '../measure.ts'
import { type Side, startPair } from '../tunnel/pair.ts'
import { atLeast, beside, compared, each, rounds } from '../tunnel/rounds.ts'

const run = promisify(execFile)
const ROUNDS = 9
const BLOCK = 3
const SECONDS = 4
const CONNECTIONS = 64

/** Runs h2load over HTTP/1.1. It sends the tunnel's name as SNI, which wrk cannot. */
async function load(side: Side): Promise<{ perSecond: number; cpuMicroseconds: number }> {
  const before = await side.cpu()
  const to = ['--connect-to', `127.0.0.1:${side.httpsPort}`]
  const args = ['--h1', '-t', '1', '-c', String(CONNECTIONS), '-D', String(SECONDS), ...to, `https://${side.hosts[0] ?? ''}/`]
  const { stdout } = await run('h2load', args)
  const [, perSecond = '0'] = /finished in [\d.]+m?s, ([\d.]+) req\/s/.exec(stdout) ?? []
  const [, succeeded = '0', failed = '0'] = /(\d+) succeeded, (\d+) failed/.exec(stdout) ?? []
  if (failed !== '0' || succeeded === '0') throw new Error(`${side.name} failed: ${stdout}`)
  return { perSecond: Number(perSecond), cpuMicroseconds: (((await side.cpu()) - before) / Number(succeeded)) * 1e6 }
}

async function runHttps() {
  await using pair = await startPair()
  const taken = await rounds([pair.edge, pair.peer], ROUNDS, load)
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
