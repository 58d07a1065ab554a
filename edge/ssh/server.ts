import { createServer, type AddressInfo, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { AddressList } from '../../crds/formats/address-list.ts'
import type { JournalWriter } from '../../journal/port.ts'
import { createEntrance } from '../balancers/entrance.ts'
import type { Peer } from '../balancers/proxy-header.ts'
import { type EdgeClock, startTicker } from '../clock.ts'
import type { LoginRoutes } from '../route.ts'
import type { LiveSessions, Session } from '../sessions.ts'
import { LoginQueue } from './admission.ts'
import { Connection, type ConnectionDeps } from './connection.ts'
import { createConnectionJournal } from './connection-journal.ts'
import { type DrainPlan, drainEvenly, type DrainingClient } from './drain.ts'
import { parseHostKey } from './host-keys.ts'
import type { SshLimits } from './limits.ts'
import { sourceKey, MinuteCounter } from '../counters.ts'
import { createSshMetrics } from './metrics.ts'
import { ServerSlots } from '../database/server-slots.ts'
import { Budget } from '../channels/receive-window.ts'
import { type PublicAddress, sentences } from './sentences.ts'
import { Reason } from './wire/messages.ts'
import { hostKeyRing } from './wire/algorithms.ts'
import { ciphersReady, nativeCiphers } from './wire/packets.ts'

export interface SshServerDeps extends EdgeClock {
  /** Name of this edge, for its connection records. */
  readonly edge: string
  /** Private keys in OpenSSH's format, one of each type. */
  readonly hostKeys: readonly string[]
  readonly routes: LoginRoutes
  readonly sessions: LiveSessions
  /** Public address of the edge, for the texts of clients. Known once the edge listens. */
  readonly address: () => PublicAddress
  /** Called when a session takes no more requests while it still lives. */
  readonly onRetired?: (session: Session) => void
  readonly journal: Pick<JournalWriter, 'connection'>
  readonly limits: SshLimits
  /** Trusted balancers, whose PROXY headers name the client. Undefined: none. */
  readonly trusted?: AddressList | undefined
  readonly log: Logger
  readonly registry: Registry
}

export interface SshServer {
  /**
   * Opens the port and resolves with its number.
   * @throws Error when the port cannot be opened
   */
  listen(host: string, port: number): Promise<number>
  /** Probes the sessions of this tunnel after a client of it has connected to another edge. */
  probe(hostname: string): void
  /** Reports the connected clients to the journal again, after the journal was replaced. */
  reportConnections(): void
  /** Rejects new clients with a sentence, and asks all clients to reconnect to another edge. Resolves when the last one was asked. */
  drain(plan: DrainPlan): Promise<void>
  /** Stops accepting, and ends all connections. */
  close(): Promise<void>
}

const TICK_MS = 500
/** Interval between two dismissed clients, where there is time: each costs another edge a handshake. */
const DRAIN_STEP_MS = 50

/**
 * Creates the SSH server of an edge: clients log in, forward port 80, and become sessions of their tunnel (docs/edge.md, "Sessions").
 */
export function createSshServer(given: SshServerDeps): SshServer {
  const { edge, hostKeys, routes, sessions, journal, limits, log, registry, now, date, onRetired = () => undefined } = given
  const connections = new Set<Connection>()
  const byHostname = new Map<string, Set<Connection>>()
  /** Ids of the local sessions that serve. */
  const serves = new Set<string>()
  let draining = false
  const failures = {
    bySource: new MinuteCounter(limits.failedPerSource, now),
    bySourceAndTunnel: new MinuteCounter(limits.failedPerSourceAndTunnel, now),
  }
  const unfinished = new MinuteCounter(limits.unfinishedPerSource, now)
  const isSlow = (source: string) => failures.bySource.reached(source) || unfinished.reached(source)
  const admission = new LoginQueue({ limits, isSlow })
  const metrics = createSshMetrics(registry, () => ({
    connections: connections.size,
    sessions: serves.size,
    channels: [...connections].reduce((sum, { channels }) => sum + channels.size, 0),
  }))
  const slots = new ServerSlots(limits)
  const connectionJournal = createConnectionJournal({ edge, journal, limits, metrics, log, now, date })

  const deps: ConnectionDeps = {
    ring: hostKeyRing(hostKeys.map(parseHostKey)),
    routes,
    limits,
    failures,
    unfinished,
    date,
    address: given.address,
    growth: new Budget(limits.windowGrowthBytes),
    slots,
    sessionsOf: (hostname) => (byHostname.get(hostname)?.size ?? 0) + elsewhere(hostname),
    loggedIn,
    serving,
    alive: (session) => sessions.confirm(session),
    refused: (connection, login) => connectionJournal.refused(connection, login),
    failed: (error) => log.debug({ err: error }, 'an SSH connection failed'),
    ended,
  }

  const entrance = createEntrance({
    trusted: given.trusted,
    headMs: limits.balancerMs,
    quietMs: limits.balancerQuietMs,
    maxAwaited: limits.connections,
    log,
  })

  function accept(socket: Socket, { address }: Peer, began: number): void {
    if (address === '') {
      // The client disconnected before this call.
      socket.destroy()
      return
    }
    metrics.connected()
    const refusal = refusalOf(sourceKey(address))
    if (refusal && closing.size >= limits.farewells) {
      socket.destroy()
      return
    }
    const connection = new Connection(socket, { clientIp: address, began }, deps)
    socket.resume()
    connections.add(connection)
    admission.enter(connection)
    if (refusal) connection.close(...refusal)
  }

  /** Arguments for closing a connection that is rejected at once; undefined when it is accepted. */
  function refusalOf(source: string): Parameters<Connection['close']> | undefined {
    if (draining) return ['edge_stopping', sentences.stopping]
    if (connections.size >= limits.connections) return ['busy', sentences.busy, Reason.tooManyConnections]
    if (admission.hasSlot(source, performance.now())) return undefined
    return ['handshakes', sentences.handshakes, Reason.tooManyConnections]
  }

  const elsewhere = (hostname: string) => sessions.of(hostname).filter(({ id }) => !serves.has(id)).length

  function loggedIn(connection: Connection): void {
    const { hostname = '' } = connection
    admission.leave(connection)
    byHostname.set(hostname, (byHostname.get(hostname) ?? new Set()).add(connection))
    connectionJournal.loggedIn(connection, routes.get(hostname)?.id)
  }

  function serving(connection: Connection, session: Session, begins: boolean): void {
    if (!begins) {
      serves.delete(session.id)
      sessions.remove(session)
      return
    }
    for (const other of byHostname.get(session.hostname) ?? []) if (other !== connection) other.probe()
    serves.add(session.id)
    sessions.add(session)
  }

  function ended(connection: Connection): void {
    connections.delete(connection)
    closing.add(connection)
    const { hostname, end, login } = connection
    if (hostname === undefined) {
      admission.leave(connection)
      return
    }
    const others = byHostname.get(hostname)
    others?.delete(connection)
    if (others?.size === 0) byHostname.delete(hostname)
    if (login && end) connectionJournal.ended(connection, end)
  }

  const closing = new Set<Connection>()
  const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
    const began = performance.now()
    entrance.admit(socket, (peer) => accept(socket, peer, began))
  })
  let ticker: Disposable | undefined
  const stopWatching = routes.onChange((hostname) => {
    for (const connection of byHostname.get(hostname) ?? []) connection.recheck()
  })

  const slowPerTick = Math.ceil((limits.slowHandshakesPerSecond * TICK_MS) / 1_000)
  function tick(time: number, stalledMs: number): void {
    admission.release(slowPerTick)
    for (const connection of connections) connection.tick(time, stalledMs)
    for (const connection of closing) {
      connection.tick(time, stalledMs)
      if (connection.gone) closing.delete(connection)
    }
  }

  async function listen(host: string, port: number): Promise<number> {
    await ciphersReady
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, () => {
        server.off('error', reject)
        resolve()
      })
    })
    server.on('error', (error) => log.error({ err: error }, 'the SSH listener failed'))
    ticker = startTicker(TICK_MS, tick)
    if (!nativeCiphers)
      log.warn('SSH uses JavaScript ciphers, which are several times slower: ssh2’s native addon is not built for this Node')
    return (server.address() as AddressInfo).port
  }

  async function close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      if (server.listening) server.close(() => resolve())
      else resolve()
    })
    entrance[Symbol.dispose]()
    for (const connection of connections) dismiss(connection)
    await closed
    ticker?.[Symbol.dispose]()
    stopWatching()
  }

  const dismiss = (connection: Connection) => connection.close('edge_stopping', sentences.stopping)

  function drain(plan: DrainPlan): Promise<void> {
    draining = true
    for (const connection of connections) if (connection.login === undefined) dismiss(connection)
    const overMs = Math.min(plan.overMs, connections.size * DRAIN_STEP_MS)
    return drainEvenly([...connections].map(drainingClientOf), { ...plan, overMs })
  }

  function drainingClientOf(connection: Connection): DrainingClient {
    return {
      get busy() {
        return connection.end === undefined && (connection.session?.channels ?? 0) > 0
      },
      retire() {
        const { session } = connection
        if (!session) return
        sessions.remove(session)
        onRetired(session)
      },
      restore() {
        const { session } = connection
        if (session && connection.end === undefined && sessions.of(session.hostname).length === 0) sessions.add(session)
      },
      dismiss: () => dismiss(connection),
    }
  }

  function probe(hostname: string): void {
    for (const connection of byHostname.get(hostname) ?? []) connection.probe()
  }

  function reportConnections(): void {
    for (const connection of connections) connectionJournal.again(connection)
  }

  return { listen, probe, reportConnections, drain, close }
}
