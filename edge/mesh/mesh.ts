import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { type Registry, Counter, Gauge } from 'prom-client'
import { closerOf } from '../../process/listeners.ts'
import type { Session, SharedSessions } from '../sessions.ts'
import { Budget } from '../channels/receive-window.ts'
import { startTicker } from '../clock.ts'
import { createDialler, type PeerAddress, type Peers } from './peers.ts'
import { createDirectory } from './directory.ts'
import { type MeshLimits, MESH_LIMITS } from './limits.ts'
import { type LinkEnd, type LinkOwner, MeshLink } from './link.ts'
import { MESH_TLS, type MeshFiles } from './mesh-files.ts'
import { type Hello, type SessionChanges, VERSION } from './messages.ts'

/** What an edge needs to be one of several. */
export interface MeshMembership {
  readonly files: MeshFiles
  readonly peers: Peers
  readonly limits?: Partial<MeshLimits>
}

interface Deps extends MeshMembership {
  /** Name of this edge, which is that of its pod. */
  readonly name: string
  /** Name of the TunnelEndpoint. */
  readonly endpoint: string
  readonly sessions: SharedSessions
  readonly onNewer: (hostname: string) => void
  readonly onRetired: (session: Session) => void
  readonly registry: Registry
  readonly log: Logger
}

/** Links of an edge to all other edges of its endpoint (mTLS): each edge knows and reaches the sessions of all. */
export interface Mesh {
  /** Sessions for the SSH server; its reports are sent to all edges. */
  readonly own: SharedSessions
  /**
   * Accepts links and dials the known peers. Resolves with the port.
   * @throws Error when the port cannot be opened
   */
  listen(host: string, port: number): Promise<number>
  /** Resolves when each peer known by now has sent its sessions, or did not answer. */
  joined(): Promise<void>
  close(): Promise<void>
}

const REDIAL_MS = 500
/** Maximum time to send pending bytes to peers when this edge stops. */
const CLOSE_MS = 1_000

export function createMesh(deps: Deps): Mesh {
  const { name, endpoint, sessions, files, peers, registry, log } = deps
  const limits = { ...MESH_LIMITS, ...deps.limits }
  const self: Hello = { version: VERSION, endpoint, edge: name, instance: randomUUID() }
  const growth = new Budget(limits.windowGrowthBytes)
  const links = new Set<MeshLink>()
  const byPeer = new Map<string, MeshLink>()
  /** Links whose peer has not sent all its sessions yet. */
  const incomplete = new Set<MeshLink>()
  const waiting = new Set<() => void>()
  let closed = false
  let redial: NodeJS.Timeout | undefined

  const directory = createDirectory({
    sessions,
    maxSessions: limits.sessions,
    onNewer: deps.onNewer,
    onRetired: deps.onRetired,
    links: () => byPeer.values(),
  })
  const metrics = createMeshMetrics(registry, () => ({
    links: byPeer.size,
    channels: [...links].reduce((sum, { channels }) => sum + channels, 0),
    sessions: directory.remote,
  }))

  const owner: LinkOwner = {
    sessionOf: (id) => directory.ownOf(id),
    greeted,
    changed(link, changes) {
      if (!directory.learn(link, changes)) link.close('protocol')
      else if (changes.complete) settle(link, changes)
    },
    drained: (link) => directory.send(link),
    failed: (error) => log.warn({ err: error }, 'a link to another edge failed'),
    ended,
  }

  function take(socket: TLSSocket, peer?: PeerAddress): void {
    const link = new MeshLink(socket, peer !== undefined, { self, limits, growth, owner })
    if (closed) {
      link.close('closed')
      return
    }
    links.add(link)
    incomplete.add(link)
    if (peer) dialled.set(link, peer)
  }
  const dialled = new WeakMap<MeshLink, PeerAddress>()

  function greeted(link: MeshLink, peer: Hello): void {
    const address = dialled.get(link)
    if (peer.instance === self.instance) {
      if (address) dialler.isSelf(address)
      link.close('duplicate')
      return
    }
    const known = byPeer.get(peer.edge)
    if (known && staysBefore(known, link)) {
      link.close('duplicate')
      return
    }
    byPeer.set(peer.edge, link)
    known?.close('duplicate')
    log.info({ peer: peer.edge }, 'linked to another edge')
    directory.begin(link)
  }

  /**
   * Whether the known link is kept rather than the other one. Of two links to one process both ends keep the same. Another process of
   * the same name replaces the former one.
   */
  function staysBefore(known: MeshLink, other: MeshLink): boolean {
    const [peer, edge] = [known.peer?.instance, other.peer?.edge ?? '']
    if (peer !== other.peer?.instance) return false
    const preferred = name < edge
    return known.dialled === preferred || other.dialled !== preferred
  }

  function settle(link: MeshLink, { complete }: Pick<SessionChanges, 'complete'> = {}): void {
    incomplete.delete(link)
    if (complete) log.debug({ peer: link.peer?.edge }, 'received all sessions of another edge')
    if (incomplete.size > 0) return
    for (const resolve of waiting) resolve()
    waiting.clear()
  }

  function ended(link: MeshLink, why: LinkEnd): void {
    links.delete(link)
    directory.end(link)
    const peer = link.peer?.edge
    if (peer !== undefined && byPeer.get(peer) === link) {
      byPeer.delete(peer)
      metrics.ended(why)
      log.info({ peer, why }, 'the link to another edge has ended')
    }
    settle(link)
    if (!closed) redial ??= setTimeout(again, REDIAL_MS * (0.5 + Math.random()))
  }

  function again(): void {
    redial = undefined
    dialler.again()
  }

  const dialler = createDialler({
    name,
    peers,
    limits,
    log,
    identity: () => files.current(),
    isLinked: (edge) => byPeer.has(edge),
    connected: take,
  })

  const server = createServer({
    ...files.current(),
    ...MESH_TLS,
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: limits.helloMs,
    noDelay: true,
  })
  server.maxConnections = limits.links
  const closeServer = closerOf(server)
  server.on('secureConnection', (socket: TLSSocket) => take(socket))
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  files.onChange((identity) => server.setSecureContext({ ...identity, ...MESH_TLS }))

  const ticker = startTicker(limits.tickMs, (now, stalledMs) => {
    for (const link of links) link.tick(now, stalledMs)
  })

  return {
    own: directory.own,
    async listen(host, port) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve()
        })
      })
      server.on('error', (error) => log.error({ err: error }, 'the listener for other edges failed'))
      dialler.again()
      return (server.address() as AddressInfo).port
    },
    async joined() {
      await dialler.tried()
      if (incomplete.size === 0) return
      await new Promise<void>((resolve) => waiting.add(resolve))
    },
    async close() {
      closed = true
      clearTimeout(redial)
      ticker[Symbol.dispose]()
      dialler.close()
      // A peer that does not read, or is in its handshake, is not awaited.
      const serverClosed = closeServer(CLOSE_MS)
      for (const link of links) link.close('closed')
      await serverClosed
    },
  }
}

interface State {
  readonly links: number
  readonly channels: number
  readonly sessions: number
}

export interface MeshMetrics {
  ended(why: LinkEnd): void
}

/** Creates the metrics of the links between edges. */
export function createMeshMetrics(registry: Registry, state: () => State): MeshMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, value: (state: State) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value(state()))
      },
    })
  gauge('mooring_edge_mesh_links', 'Links of this edge to other edges of the endpoint.', ({ links }) => links)
  gauge('mooring_edge_mesh_channels', 'Channels between this edge and others.', ({ channels }) => channels)
  gauge('mooring_edge_mesh_sessions', 'Sessions of other edges that this one can reach.', ({ sessions }) => sessions)
  const ends = new Counter({
    name: 'mooring_edge_mesh_link_ends_total',
    help: 'Links to other edges that have ended.',
    labelNames: ['reason'],
    registers,
  })
  return { ended: (why) => ends.inc({ reason: why }) }
}
