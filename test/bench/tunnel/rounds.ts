import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Figure, type Finding, finding } from '../measure.ts'
import { median, ratio } from '../statistics.ts'
import type { Side } from './pair.ts'

/** Measurement of one side under load. */
export interface Sample extends Loaded {
  /** Processor time of its servers for each request, in microseconds. */
  readonly cpuMicroseconds: number
}

/** @throws Error when a request failed */
export async function sample(side: Side, load: Load): Promise<Sample> {
  const before = await side.cpu()
  const loaded = await wrk(side, load)
  if (loaded.failed > 0) throw new Error(`${side.name} failed ${loaded.failed} of ${loaded.requests} requests:\n${loaded.output}`)
  return { ...loaded, cpuMicroseconds: (((await side.cpu()) - before) / loaded.requests) * 1e6 }
}

/** Samples of the edge and of its peer. */
export type Both<T> = readonly [readonly T[], readonly T[]]

/** Measures the two sides in turn, in alternating order; a first round is not counted. */
export async function rounds<T>(sides: readonly [Side, Side], count: number, take: (side: Side) => Promise<T>): Promise<Both<T>> {
  const taken: readonly [T[], T[]] = [[], []]
  for (const side of sides) await take(side)
  for (let round = 0; round < count; round++) {
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) taken[index].push(await take(sides[index]))
  }
  return taken
}

/** Returns the ratio of the two medians, in blocks of rounds. */
export function compared([edge, peer]: Both<number>, block: number): Figure {
  const { median: value, low, high } = ratio(edge, peer, block)
  return { value, unit: '×', digits: 2, spread: `${low.toFixed(2)}–${high.toFixed(2)}` }
}

/** Returns the median of the edge, followed by that of its peer. */
export function beside([edge, peer]: Both<number>, unit: string, digits = 1): Figure {
  return { value: median(edge), unit, digits, spread: `sshd + nginx ${median(peer).toFixed(digits)}` }
}

export const each = <T>([edge, peer]: Both<T>, of: (taken: T) => number): Both<number> => [edge.map(of), peer.map(of)]

/** Returns the finding for a figure that must be at least `limit`. */
export function atLeast(what: string, figure: Figure, limit: number): Finding {
  return {
    ...finding(what, figure),
    target: `≥ ${limit}${figure.unit === '' ? '' : ` ${figure.unit}`}`,
    holds: figure.value >= limit,
  }
}

const run = promisify(execFile)

export interface Load {
  readonly connections: number
  readonly seconds: number
  readonly path?: string
  readonly scheme?: 'http' | 'https'
  /** Index of the requested tunnel. */
  readonly host?: string
  /** Whether each request uses a new connection. */
  readonly closes?: boolean
  /** Lua script that creates the requests. */
  readonly script?: string
}

export interface Loaded {
  readonly requests: number
  readonly perSecond: number
  readonly bytesPerSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Number of responses other than 2xx and 3xx, and of broken connections. */
  readonly failed: number
  readonly output: string
}

/** Runs wrk with one thread against a side. @throws Error when it fails */
export async function wrk(side: Pick<Side, 'httpPort' | 'httpsPort' | 'hosts'>, load: Load): Promise<Loaded> {
  const { connections, seconds, path = '/', scheme = 'http', host = side.hosts[0] ?? '', closes = false, script } = load
  // The URL has the loopback address: wrk sends a given Host, but an address never as SNI.
  const url = `${scheme}://127.0.0.1:${scheme === 'http' ? side.httpPort : side.httpsPort}${path}`
  const args = [
    '-t',
    '1',
    '-c',
    String(connections),
    '-d',
    `${seconds}s`,
    '--latency',
    '--timeout',
    '20s',
    '-H',
    `Host: ${host}`,
    ...(closes ? ['-H', 'Connection: close'] : []),
    ...(script === undefined ? [] : ['-s', script]),
    url,
  ]
  const { stdout } = await run('wrk', args)
  return { ...parsed(stdout), output: stdout }
}

const UNITS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  m: 60_000,
  B: 1,
  KB: 1_024,
  MB: 1_024 ** 2,
  GB: 1_024 ** 3,
}

/** Parses a number with its unit, in milliseconds or bytes. */
function measure(text: string, pattern: RegExp): number {
  const [, value = '0', unit = ''] = pattern.exec(text) ?? []
  return Number(value) * (UNITS[unit] ?? 1)
}

export function parsed(text: string): Omit<Loaded, 'output'> {
  const errors = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text)?.slice(1) ?? []
  return {
    requests: measure(text, /(\d+) requests in/),
    perSecond: measure(text, /Requests\/sec: +([\d.]+)/),
    bytesPerSecond: measure(text, /Transfer\/sec: +([\d.]+)([KMG]?B)/),
    p50: measure(text, /50% +([\d.]+)([a-z]+)/),
    p99: measure(text, /99% +([\d.]+)([a-z]+)/),
    failed: measure(text, /Non-2xx or 3xx responses: (\d+)/) + errors.reduce((sum, count) => sum + Number(count), 0),
  }
}
