import type { Logger } from 'pino'
import type { SecureContext } from 'node:tls'
import type { Registry } from 'prom-client'
import type { AddressList } from '../../crds/formats/address-list.ts'
import type { JournalWriter } from '../../journal/port.ts'
import type { EdgeClock } from '../clock.ts'
import { Counts } from '../counts.ts'
import type { Routes } from '../route.ts'
import type { Session, Sessions } from '../session.ts'
import type { ProxyContext } from './context.ts'
import { type ProxyLimits, PROXY_LIMITS } from './limits.ts'
import { createListeners, type RenewedCertificate } from './listener.ts'
import { createProxyMetrics } from './metrics.ts'
import { createModifications } from './head/modifications.ts'
import { createPools } from './upstream/pool.ts'

interface Deps extends EdgeClock {
  readonly routes: Routes
  readonly sessions: Pick<Sessions, 'pick' | 'refused' | 'waitFor' | 'of'>
  readonly journal: Pick<JournalWriter, 'request'>
  /** Certificate and key for a name of a TLS handshake, in lower case; undefined: it is a stranger's. What is answered is kept for a while: see `forget`. */
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  /** For handshakes that name no tunnel, so that those visitors are told so; they are refused, when absent. */
  readonly unknownHosts?: RenewedCertificate | undefined
  readonly limits?: Partial<ProxyLimits>
  readonly registry: Registry
  readonly log: Pick<Logger, 'warn' | 'error'>
  /** Ports that visitors use: what backends and redirects are told. */
  readonly publicPorts: { readonly http: number; readonly https: number }
  /** Balancers whose PROXY headers and X-Forwarded-… fields are believed. Undefined: none; an empty list would be all. */
  readonly trusted?: AddressList | undefined
  /** What a certificate authority that asks `host` for this token is to be answered (RFC 8555, section 8.3). */
  readonly challenge?: (host: string, token: string) => string | undefined
  /** 48 bytes that edges share, so that each resumes the sessions of all. */
  readonly ticketKeys?: Buffer | undefined
}

/** The visitors' side of an edge. */
export interface Proxy {
  /** Resolves with the port, once it is served. */
  listenHttp(host: string, port: number): Promise<number>
  listenHttps(host: string, port: number): Promise<number>
  /** A certificate has changed: the next handshake asks for it anew. */
  forget(serverName: string): void
  /** A session takes no more requests; those under way go on. */
  retire(session: Session): void
  /** Has visitors come anew for each request, so that they get to other edges; they are served as before. */
  drain(): void
  /** Takes no more connections, lets requests under way finish for `graceMs`, then closes what is left. */
  close(graceMs?: number): Promise<void>
}

/** Serves visitors: HTTP/1.1 and HTTP/2, plain and over TLS, each request to the session of the tunnel that it names. */
export function createProxy(deps: Deps): Proxy {
  const limits = { ...PROXY_LIMITS, ...deps.limits }
  const { now, registry } = deps
  const pools = createPools({ now, idleMs: limits.idleUpstreamMs, spareMs: limits.spareUpstreamMs })
  const context: ProxyContext = {
    ...deps,
    limits,
    trusted: deps.trusted,
    challenge: deps.challenge ?? (() => undefined),
    pools,
    metrics: createProxyMetrics({ registry, pools }),
    load: new Counts(),
    modificationsOf: createModifications(),
    connections: new Set(),
    draining: false,
  }
  const { contextFor, unknownHosts, ticketKeys } = deps
  const listeners = createListeners({ context, contextFor, unknownHosts, ticketKeys })

  const sweeper = setInterval(() => {
    const at = now()
    for (const connection of context.connections) connection.tick(at)
    pools.sweep()
  }, limits.sweepMs)

  /** Hostnames of tunnels that have changed and have requests under way. */
  const changed = new Set<string>()
  const stopWatching = deps.routes.onChange((hostname) => {
    if (context.load.of(hostname) === 0) return
    if (changed.size === 0) setImmediate(recheck)
    changed.add(hostname)
  })

  function recheck(): void {
    for (const connection of context.connections) connection.recheck(changed)
    changed.clear()
  }

  function drain(): void {
    context.draining = true
    for (const connection of context.connections) connection.drain()
  }

  async function close(graceMs = 0): Promise<void> {
    drain()
    await listeners.close(graceMs)
    clearInterval(sweeper)
    stopWatching()
    pools.close()
  }

  return {
    listenHttp: (host, port) => listeners.listenHttp(host, port),
    listenHttps: (host, port) => listeners.listenHttps(host, port),
    forget: (serverName) => listeners.forget(serverName),
    retire: (session) => pools.retire(session),
    drain,
    close,
  }
}
