import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProxyLimits } from '../../../edge/proxy/limits.ts'
import type { RoutedDatabase, RoutedPassword } from '../../../edge/route.ts'
import type { SshLimits } from '../../../edge/ssh/limits.ts'
import { scratch } from '../postgresql/disks.ts'
import type { MetricValues, Order, Ready, Records, Usage, WholeEdgeOptions } from './whole-edge-process.ts'

const PROGRAM = new URL('whole-edge-process.ts', import.meta.url)

/** Whole edge with a journal on disk, in a process of its own, so that a test can measure or kill it. */
export interface WholeEdge extends AsyncDisposable, Ready {
  readonly domain: string
  readonly pid: number
  /** Returns its log lines of level `warn` and above so far. */
  readonly logged: () => string
  /** Creates or changes a tunnel, or a login to a database. Rejects when the edge has died, as all methods do. */
  set(hostname: string, config?: object, passwords?: readonly RoutedPassword[], database?: RoutedDatabase): Promise<void>
  usage(): Promise<Usage>
  records(hostname: string): Promise<Records>
  /** Returns the values of a metric, none for an unknown name. */
  metric(name: string): Promise<MetricValues>
}

export interface WholeEdgeLimits {
  readonly ssh?: Partial<SshLimits>
  readonly proxy?: Partial<ProxyLimits>
  /** Directory of the journal; default: in memory where there is space. */
  readonly folder?: string
  /** Address to listen on; default: loopback. */
  readonly host?: string
  /**
   * Time of a stopped clock in milliseconds since the epoch, for tests of limits by the minute on slow machines; default: the
   * real clock.
   */
  readonly clock?: number
}

export async function startWholeEdge(limits: WholeEdgeLimits = {}): Promise<WholeEdge> {
  const directory = await mkdtemp(join(limits.folder ?? (await scratch()), 'edge-'))
  const { host = '127.0.0.1', clock, ssh = {}, proxy = {} } = limits
  const options: WholeEdgeOptions = { directory, host, clock, ssh, proxy }
  const child = fork(PROGRAM, [JSON.stringify(options)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let logged = ''
  child.stderr?.on('data', (chunk: Buffer) => (logged += chunk.toString()))
  const ask = asker(child, () => logged)
  const ready = (await ask(undefined)) as Ready

  return {
    ...ready,
    domain: 'tunnel.localhost',
    pid: child.pid ?? 0,
    logged: () => logged,
    async set(hostname, config = {}, passwords = [], database) {
      await ask({ do: 'set', hostname, config, passwords, database })
    },
    usage: async () => (await ask({ do: 'usage' })) as Usage,
    records: async (hostname) => (await ask({ do: 'records', hostname })) as Records,
    metric: async (name) => (await ask({ do: 'metric', name })) as MetricValues,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit')
        // A test may have killed the edge just now.
        child.send({ do: 'stop' }, () => undefined)
        await gone
      }
      await rm(directory, { recursive: true, maxRetries: 5 })
    },
  }
}

/** Creates a function that sends commands one at a time; `undefined` waits for an unsolicited reply. */
function asker(child: ChildProcess, logged: () => string): (order: Order | undefined) => Promise<unknown> {
  let last: Promise<unknown> = Promise.resolve()
  const one = (order: Order | undefined) =>
    new Promise((resolve, reject) => {
      const settle = (reply: unknown) => {
        child.off('message', settle).off('exit', died)
        resolve(reply)
      }
      const died = (code: number | null, signal: string | null) =>
        reject(new Error(`the edge has died (${signal ?? String(code)}): ${logged()}`))
      child.on('message', settle).on('exit', died)
      if (child.exitCode !== null || child.signalCode !== null) died(child.exitCode, child.signalCode)
      else if (order) child.send(order, (error) => error && died(child.exitCode, child.signalCode))
    })
  return (order) => (last = last.then(() => one(order)))
}
