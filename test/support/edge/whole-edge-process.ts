import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { type EdgeClock, systemClock } from '../../../edge/clock.ts'
import { returnMemoryAfterLoad } from '../../../edge/memory.ts'
import { PROXY_LIMITS, type ProxyLimits } from '../../../edge/proxy/limits.ts'
import { createProxy } from '../../../edge/proxy/proxy.ts'
import type { RoutedDatabase, RoutedPassword } from '../../../edge/route.ts'
import { createSessions } from '../../../edge/sessions.ts'
import { knownHostsFile } from '../../../crds/formats/ssh-public-key.ts'
import { generateHostKeys, parseHostKey } from '../../../edge/ssh/host-keys.ts'
import { DEFAULT_SSH_LIMITS, type SshLimits } from '../../../edge/ssh/limits.ts'
import { createSshServer } from '../../../edge/ssh/server.ts'
import type { ConnectionRecord, RequestRecord } from '../../../journal/port.ts'
import { openSqliteJournal } from '../../../journal/sqlite.ts'
import { routesInMemory } from './ssh-edge.ts'
import { selfSignedPem } from './proxy-fixture.ts'

/** Options of the process, as JSON in its last argument. */
export interface WholeEdgeOptions {
  readonly directory: string
  /** Address to listen on. */
  readonly host: string
  /** Time of a stopped clock in milliseconds since the epoch; default: the real clock. */
  readonly clock: number | undefined
  readonly ssh: Partial<SshLimits>
  readonly proxy: Partial<ProxyLimits>
}

/** Command to the process. Each gets one {@link Reply}. */
export type Order =
  | {
      readonly do: 'set'
      readonly hostname: string
      readonly config: object
      readonly passwords: readonly RoutedPassword[]
      readonly database: RoutedDatabase | undefined
    }
  | { readonly do: 'usage' }
  | { readonly do: 'records'; readonly hostname: string }
  | { readonly do: 'metric'; readonly name: string }
  | { readonly do: 'stop' }

/** Memory in bytes after a garbage collection, and numbers of live objects. */
export interface Usage {
  readonly rss: number
  readonly heap: number
  readonly buffers: number
  readonly sessions: number
  readonly visitors: number
}

/** Records of one tunnel in its journal, newest first, at most a hundred of each kind. */
export interface Records {
  readonly requests: readonly RequestRecord[]
  readonly connections: readonly ConnectionRecord[]
}

/** Values of a metric, each with its labels. */
export type MetricValues = readonly { readonly labels: object; readonly value: number }[]

export interface Ready {
  readonly ports: { readonly ssh: number; readonly http: number; readonly https: number }
  readonly knownHosts: string
  /** CA of its certificate, PEM. */
  readonly ca: string
}

export type Reply = Ready | Usage | Records | MetricValues | { readonly done: true }

/** Address to which the clients of most tests connect. */
const LOOPBACK = '127.0.0.1'
const PAGE = { limit: 100 }

async function main({ directory, host, clock, ssh: sshLimits, proxy: proxyLimits }: WholeEdgeOptions): Promise<void> {
  const tunnels = routesInMemory()
  const routes = tunnels.port
  const [sessions, registry] = [createSessions(), new Registry()]
  const time: EdgeClock = clock === undefined ? systemClock : { now: () => clock, date: () => clock }
  const log = pino({ level: 'warn' }, pino.destination({ dest: 2, sync: true }))
  const journal = await openSqliteJournal({ path: join(directory, 'journal.db'), log, registry })
  const hostKeys = generateHostKeys()
  const pem = selfSignedPem(routes.domain)
  const tls = createSecureContext(pem)
  const proxy = createProxy({
    ...{ routes, sessions, journal, registry, log, ...time },
    contextFor: async () => tls,
    limits: { ...PROXY_LIMITS, ...proxyLimits },
    publicPorts: { http: 80, https: 443 },
  })
  returnMemoryAfterLoad()
  const limits = { ...DEFAULT_SSH_LIMITS, ...sshLimits }
  const ssh = createSshServer({
    ...{ edge: 'test', hostKeys, routes, sessions, journal, registry, log, ...time },
    ...{ limits, address: () => ({ sshHost: host, sshPort, httpsPort: 443 }) },
  })
  const [http, https, sshPort] = [await proxy.listenHttp(host, 0), await proxy.listenHttps(host, 0), await ssh.listen(host, 0)]

  async function usage(): Promise<Usage> {
    globalThis.gc?.()
    const { rss, heapUsed, external } = process.memoryUsage()
    const visitors = await registry.getSingleMetric('mooring_edge_visitor_connections')?.get()
    return {
      ...{ rss, heap: heapUsed, buffers: external, sessions: sessions.count },
      visitors: (visitors?.values ?? []).reduce((sum, { value }) => sum + value, 0),
    }
  }

  async function records(hostname: string): Promise<Records> {
    const tunnel = routes.get(hostname)?.id ?? ''
    const requests = await journal.requests({ tunnel }, PAGE)
    return { requests, connections: await journal.connections({ tunnel, refused: true }, PAGE) }
  }

  async function carryOut(order: Order): Promise<Reply> {
    if (order.do === 'usage') return usage()
    if (order.do === 'records') return records(order.hostname)
    if (order.do === 'metric') return (await registry.getSingleMetric(order.name)?.get())?.values ?? []
    if (order.do === 'set') tunnels.set(order.hostname, order.config, order.passwords, order.database)
    else {
      await proxy.close()
      await ssh.close()
      await journal[Symbol.asyncDispose]()
    }
    return { done: true }
  }

  const tell = (reply: Reply) => process.send?.(reply)
  process.on('message', (order: Order) => {
    void carryOut(order).then((reply) => {
      tell(reply)
      if (order.do === 'stop') process.disconnect()
    })
  })
  // The parent process has ended.
  process.on('disconnect', () => process.exit())
  const lines = hostKeys.map((key) => parseHostKey(key).publicLine)
  tell({ ports: { ssh: sshPort, http, https }, knownHosts: knownHostsFile(lines, LOOPBACK, sshPort), ca: pem.cert })
}

await main(JSON.parse(process.argv.at(-1) ?? '') as WholeEdgeOptions)
