import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { AddressList } from '../../crds/formats/address-list.ts'
import { type Peer, peerOf, readProxyHeader } from './proxy-header.ts'

interface Deps {
  /** Trusted balancers, whose PROXY headers name the client. Undefined: none. */
  readonly trusted: AddressList | undefined
  /** Maximum time for the PROXY header, in milliseconds. */
  readonly headMs: number
  /**
   * Time after which a silent balancer counts as sending no PROXY header, in milliseconds: SSH clients may wait for the server's first
   * bytes.
   */
  readonly quietMs?: number
  /** Maximum number of connections whose PROXY header is awaited; more are closed. */
  readonly maxAwaited: number
  readonly log: Pick<Logger, 'warn'>
}

/** Entry of connections, with or without a PROXY header. */
export interface Entrance extends Disposable {
  /**
   * Calls `begin` with the peer of the socket: at once, or after the PROXY header when the socket belongs to a trusted balancer. The
   * header is removed. After it, or where there was none, the socket is paused and still has every byte. A socket with an invalid
   * header is destroyed. Disposing destroys sockets whose header is awaited.
   */
  admit(socket: Socket, begin: (peer: Peer) => void): void
}

/** Minimum interval between two warnings: clients behind a balancer must not fill the log. */
const WARN_MS = 60_000

export function createEntrance({ trusted, headMs, quietMs, maxAwaited, log }: Deps): Entrance {
  const awaited = new Set<Socket>()
  let warnedAt = -Infinity

  function warn(balancer: string): void {
    const at = performance.now()
    if (at - warnedAt < WARN_MS) return
    warnedAt = at
    log.warn({ balancer }, 'invalid PROXY header from a trusted balancer')
  }

  function read(socket: Socket, begin: (peer: Peer) => void): void {
    const balancer = peerOf(socket)
    let bytes: Buffer = Buffer.alloc(0)
    awaited.add(socket)
    const destroy = () => socket.destroy()
    const timer = setTimeout(destroy, headMs)
    const quiet = quietMs === undefined ? undefined : setTimeout(begun, quietMs)

    function stop(): void {
      clearTimeout(timer)
      clearTimeout(quiet)
      awaited.delete(socket)
      socket.off('data', take).off('end', destroy).off('error', destroy).off('close', stop)
    }

    function admitted(peer: Peer, length: number): void {
      stop()
      socket.pause()
      if (bytes.length > length) socket.unshift(bytes.subarray(length))
      begin(peer)
    }

    function begun(): void {
      if (bytes.length === 0 && !socket.destroyed) admitted(balancer, 0)
    }

    function take(chunk: Buffer): void {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      const header = readProxyHeader(bytes)
      if (header === 'more') return
      if (header === 'none') return admitted(balancer, 0)
      if (header !== 'invalid') return admitted(header.source ?? balancer, header.length)
      warn(balancer.address)
      socket.destroy()
    }

    socket.on('data', take).on('end', destroy).on('error', destroy).on('close', stop)
  }

  return {
    admit(socket, begin) {
      const isBalancer = trusted?.allows(socket.remoteAddress ?? '') === true
      if (!isBalancer) begin(peerOf(socket))
      else if (awaited.size < maxAwaited) read(socket, begin)
      else socket.destroy()
    },
    [Symbol.dispose]() {
      for (const socket of awaited) socket.destroy()
    },
  }
}
