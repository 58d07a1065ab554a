import { connect, type TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { backoffMs } from '../../shared/backoff.ts'
import type { MeshLimits } from './limits.ts'
import { MESH_TLS, type MeshIdentity } from './mesh-files.ts'
import type { PeerAddress, Peers } from './peers.ts'

interface Deps {
  /** Name of this edge. */
  readonly name: string
  readonly peers: Peers
  readonly identity: () => MeshIdentity
  readonly limits: Pick<MeshLimits, 'helloMs' | 'patienceMs'>
  readonly log: Pick<Logger, 'debug'>
  /** Whether there is a link to the edge of this name. */
  isLinked(name: string): boolean
  /** A connection that a certificate of the endpoint answered. Its failure afterwards is told to {@link Dialler.again}. */
  connected(socket: TLSSocket, peer: PeerAddress): void
}

/** Sees to it that there is a link to each peer. */
export interface Dialler {
  /** Dials who is missing; called at each change, and after the end of a link. */
  again(): void
  /** This address is our own. */
  isSelf(peer: PeerAddress): void
  /** Resolves when each peer that is known by now is linked, or did not answer the first time. */
  tried(): Promise<void>
  close(): void
}

const BACKOFF = { baseMs: 100, maxMs: 5_000 }
const keyOf = ({ host, port }: PeerAddress): string => `${host} ${port}`

interface Attempt {
  failures: number
  socket: TLSSocket | undefined
  timer: NodeJS.Timeout | undefined
  /** Resolves when it has led to a link, has failed once, or is not wanted any more. */
  readonly tried: PromiseWithResolvers<void>
}

/**
 * Of two edges the one whose name comes first dials, and the other when nothing has come of that for a while: then each pair has one link.
 * An edge that starts dials all, for it is ready when it knows their sessions; and so does one that no slice names yet: nobody can dial it.
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
    const wanted = others()
    const keys = new Set(wanted.map(keyOf))
    for (const [key, attempt] of attempts) if (!keys.has(key)) forget(key, attempt)
    const isPatient = started && isListed()
    started = true
    for (const peer of wanted) {
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
    // The authority signs for edges of this endpoint alone, so whoever has a certificate of it is one, whatever its address.
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
