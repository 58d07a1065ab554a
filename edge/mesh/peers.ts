import { connect, type TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import type { EndpointSlice } from '../../crds/core.ts'
import type { Cache } from '../../store/cache.ts'
import { backoffMs } from '../../shared/timers.ts'
import type { MeshLimits } from './limits.ts'
import { MESH_TLS, type MeshIdentity } from './mesh-files.ts'

/** Address at which another edge of the endpoint accepts links. */
export interface PeerAddress {
  /** Name of the edge's pod; the address, where the name is not known. */
  readonly name: string
  readonly host: string
  readonly port: number
}

const PORT_NAME = 'mesh'

/** Returns every edge in the EndpointSlices of an endpoint's mesh Service, ready or not. Pure. */
export function peersOf(slices: readonly EndpointSlice[]): readonly PeerAddress[] {
  const found = new Map<string, PeerAddress>()
  for (const { endpoints, ports } of slices) {
    const port = (ports ?? []).find(({ name }) => name === PORT_NAME || name === undefined || name === null)?.port
    if (typeof port !== 'number') continue
    for (const { addresses, targetRef } of endpoints ?? []) {
      const [host] = addresses
      if (host !== undefined) found.set(`${host} ${port}`, { name: targetRef?.name ?? `${host}:${port}`, host, port })
    }
  }
  return [...found.values()]
}

/** Peers of an edge as its caches know them; `onChange` returns the unsubscribe function. */
export interface Peers {
  list(): readonly PeerAddress[]
  onChange(listener: () => void): () => void
}

export function peersIn(slices: Cache<typeof EndpointSlice>): Peers {
  return { list: () => peersOf(slices.list()), onChange: (listener) => slices.onChange(listener) }
}

interface Deps {
  /** Name of this edge. */
  readonly name: string
  readonly peers: Peers
  readonly identity: () => MeshIdentity
  readonly limits: Pick<MeshLimits, 'helloMs' | 'patienceMs'>
  readonly log: Pick<Logger, 'debug'>
  /** Whether a link to the edge of this name exists. */
  isLinked(name: string): boolean
  /**
   * Takes over a connection whose peer presented a certificate of the endpoint. The end of its link must be reported to {@link
   * Dialler.again}.
   */
  connected(socket: TLSSocket, peer: PeerAddress): void
}

/** Keeps a link to each peer. */
interface Dialler {
  /** Dials the peers without a link. Called at each change of the peers, and after the end of a link. */
  again(): void
  /** Records that an address is this edge's own. */
  isSelf(peer: PeerAddress): void
  /** Resolves when each peer known by now is linked or its first attempt has failed. */
  tried(): Promise<void>
  close(): void
}

const BACKOFF = { baseMs: 100, maxMs: 5_000 }
const keyOf = ({ host, port }: PeerAddress): string => `${host} ${port}`

interface Attempt {
  failures: number
  socket: TLSSocket | undefined
  timer: NodeJS.Timeout | undefined
  /** Resolves when the attempt has led to a link, has failed once, or is abandoned. */
  readonly tried: PromiseWithResolvers<void>
}

/**
 * Creates a dialler. Of two edges the one whose name sorts first dials. The other dials when no link exists after `patienceMs`, so that
 * each pair has one link. An edge that starts dials all peers, because it is ready only when it knows their sessions. So does an edge
 * that no EndpointSlice names yet: peers cannot dial it.
 */
export function createDialler(deps: Deps): Dialler {
  const { name, peers, identity, limits, log } = deps
  const attempts = new Map<string, Attempt>()
  const selves = new Set<string>()
  let started = false
  let closed = false

  const others = () => peers.list().filter((peer) => peer.name !== name && !selves.has(keyOf(peer)))
  const isListed = () => peers.list().some((peer) => peer.name === name || selves.has(keyOf(peer)))

  function again(): void {
    if (closed) return
    const targets = others()
    const keys = new Set(targets.map(keyOf))
    for (const [key, attempt] of attempts) if (!keys.has(key)) forget(key, attempt)
    const isPatient = started && isListed()
    started = true
    for (const peer of targets) {
      if (attempts.has(keyOf(peer)) || deps.isLinked(peer.name)) continue
      const attempt: Attempt = { failures: 0, socket: undefined, timer: undefined, tried: Promise.withResolvers() }
      attempts.set(keyOf(peer), attempt)
      if (isPatient && peer.name < name) attempt.timer = setTimeout(dial, limits.patienceMs, peer, attempt)
      else dial(peer, attempt)
    }
  }

  function forget(key: string, { socket, timer, tried }: Attempt): void {
    attempts.delete(key)
    clearTimeout(timer)
    socket?.destroy()
    tried.resolve()
  }

  function dial(peer: PeerAddress, attempt: Attempt): void {
    attempt.timer = undefined
    if (deps.isLinked(peer.name)) {
      forget(keyOf(peer), attempt)
      return
    }
    const { host, port } = peer
    // The authority signs only for edges of this endpoint, so a valid certificate identifies an edge at any address.
    const socket = connect({ host, port, ...identity(), ...MESH_TLS, checkServerIdentity: () => undefined })
    attempt.socket = socket
    socket.setNoDelay(true)
    socket.setTimeout(limits.helloMs, () => socket.destroy(new Error('a peer does not answer')))
    socket.once('error', (error) => log.debug({ err: error, peer: peer.name }, 'a peer cannot be reached'))
    const failed = () => retry(peer, attempt)
    socket.once('close', failed)
    socket.once('secureConnect', () => {
      socket.off('close', failed)
      socket.setTimeout(0)
      attempts.delete(keyOf(peer))
      deps.connected(socket, peer)
      attempt.tried.resolve()
    })
  }

  function retry(peer: PeerAddress, attempt: Attempt): void {
    attempt.socket = undefined
    attempt.failures += 1
    if (!closed && attempts.get(keyOf(peer)) === attempt) {
      attempt.timer = setTimeout(dial, backoffMs(BACKOFF, attempt.failures, Math.random), peer, attempt)
    }
    attempt.tried.resolve()
  }

  const stop = peers.onChange(again)
  return {
    again,
    isSelf: (peer) => void selves.add(keyOf(peer)),
    async tried() {
      await Promise.all([...attempts.values()].map(({ tried }) => tried.promise))
    },
    close() {
      closed = true
      stop()
      for (const [key, attempt] of attempts) forget(key, attempt)
    },
  }
}
