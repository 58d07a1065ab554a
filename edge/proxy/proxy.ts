import type { Logger } from 'pino'
import type { SecureContext } from 'node:tls'
import type { Registry } from 'prom-client'
import type { AddressList } from '../../crds/formats/address-list.ts'
import type { JournalWriter, RequestRecord } from '../../journal/port.ts'
import { percentEncoded } from '../../shared/percent-encoding.ts'
import type { EdgeClock } from '../clock.ts'
import { Counts } from '../counters.ts'
import type { Routes } from '../route.ts'
import type { Session, Sessions } from '../sessions.ts'
import type { ProxyContext } from './context.ts'
import { type ProxyLimits, PROXY_LIMITS } from './limits.ts'
import { createListeners, type RenewedCertificate } from './listener.ts'
import { createProxyMetrics } from './metrics.ts'
import { createModifications } from './head/forward-fields.ts'
import { createPools } from './upstream/pool.ts'

interface Deps extends EdgeClock {
  readonly routes: Routes
  readonly sessions: Pick<Sessions, 'pick' | 'refused' | 'waitFor' | 'of'>
  readonly journal: Pick<JournalWriter, 'request'>
  /** Returns the TLS context for a server name, in lower case; undefined for an unknown host. The result is cached until `forget`. */
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  /** Certificate for handshakes that name no tunnel, so that the visitor gets an error page. Without it the handshake fails. */
  readonly unknownHosts?: RenewedCertificate | undefined
  readonly limits?: Partial<ProxyLimits>
  readonly registry: Registry
  readonly log: Pick<Logger, 'warn' | 'error'>
  /** Ports that visitors use, for redirects and X-Forwarded-Port. */
  readonly publicPorts: { readonly http: number; readonly https: number }
  /** Balancers whose PROXY headers and X-Forwarded fields are trusted. Undefined: none; an empty list would mean all. */
  readonly trusted?: AddressList | undefined
  /** Returns the response to an ACME challenge for `host` (RFC 8555, section 8.3). */
  readonly challenge?: (host: string, token: string) => string | undefined
  /** Returns the key authorization of the challenge tls-alpn-01 for a server name under order (RFC 8737). */
  readonly tlsChallenge?: ((serverName: string) => string | undefined) | undefined
  /** 48 bytes of TLS ticket keys that edges share, so that each resumes the sessions of all. */
  readonly ticketKeys?: Buffer | undefined
}

/** HTTP proxy of an edge. */
export interface Proxy {
  /** Opens the port and resolves with its number. */
  listenHttp(host: string, port: number): Promise<number>
  listenHttps(host: string, port: number): Promise<number>
  /** Drops the cached TLS context after a change of the certificate. */
  forget(serverName: string): void
  /** Ends the use of a session for new requests; those in progress continue. */
  retire(session: Session): void
  /** Closes connections after their response, so that visitors connect to other edges. Requests are still served. */
  drain(): void
  /** Stops accepting, lets running requests finish for at most `graceMs` milliseconds, then closes the rest. */
  close(graceMs?: number): Promise<void>
}

/** Returns the record with its text from the visitor percent-encoded: owners read their log on terminals. */
function printable(record: RequestRecord): RequestRecord {
  const [method, path] = [percentEncoded(record.method), percentEncoded(record.path)]
  return method === record.method && path === record.path ? record : { ...record, method, path }
}

/**
 * Creates the proxy. It serves HTTP/1.1 and HTTP/2, plain and over TLS, and forwards each request to a session of the tunnel that it
 * names.
 */
export function createProxy(deps: Deps): Proxy {
  const limits = { ...PROXY_LIMITS, ...deps.limits }
  const { now, registry } = deps
  const pools = createPools({ now, idleMs: limits.idleUpstreamMs, spareMs: limits.spareUpstreamMs })
  const context: ProxyContext = {
    ...deps,
    limits,
    journal: { request: (record) => deps.journal.request(printable(record)) },
    trusted: deps.trusted,
    challenge: deps.challenge ?? (() => undefined),
    pools,
    metrics: createProxyMetrics({ registry, pools }),
    load: new Counts(),
    modificationsOf: createModifications(),
    connections: new Set(),
    draining: false,
  }
  const { contextFor, unknownHosts, ticketKeys, tlsChallenge = () => undefined } = deps
  const listeners = createListeners({ context, contextFor, unknownHosts, ticketKeys, tlsChallenge })

  const sweeper = setInterval(() => {
    const at = now()
    for (const connection of context.connections) connection.tick(at)
    pools.sweep()
  }, limits.sweepMs)

  /** Hostnames of changed tunnels that have requests in progress. */
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
