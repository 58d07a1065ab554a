import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { AddressList } from '../../crds/formats/address-list.ts'
import { type Peer, peerOf } from './peer.ts'
import { readProxyHeader } from './proxy-header.ts'

interface Deps {
  /** Balancers that are believed about whom they speak for. Undefined: none. */
  readonly trusted: AddressList | undefined
  /** For a balancer to say it, in milliseconds. */
  readonly headMs: number
  /** Where clients may wait for the server's first word: a balancer that has been silent for so long has nothing to say. */
  readonly quietMs?: number
  /** Balancers that are waited for at a time; one more is turned away. */
  readonly most: number
  readonly log: Pick<Logger, 'warn'>
}

/** Where connections come in. */
export interface Entrance extends Disposable {
  /**
   * Calls `begin` once it is known who is there: at once, unless the socket is of a trusted balancer, of which a PROXY header is awaited. That is taken off; after
   * it, and where there was none, the socket is paused and still has every byte. What cannot be believed is destroyed. Disposing destroys what is awaited.
   */
  admit(socket: Socket, begin: (peer: Peer) => void): void
}

/** Between two warnings: whoever can connect through a balancer must not fill the log. */
const WARN_MS = 60_000

export function createEntrance({ trusted, headMs, quietMs, most, log }: Deps): Entrance {
  const awaited = new Set<Socket>()
  let warnedAt = -Infinity

  function warn(balancer: string): void {
    const at = performance.now()
    if (at - warnedAt < WARN_MS) return
    warnedAt = at
    log.warn({ balancer }, 'a PROXY header from a trusted balancer could not be read')
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
      else if (awaited.size < most) read(socket, begin)
      else socket.destroy()
    },
    [Symbol.dispose]() {
      for (const socket of awaited) socket.destroy()
    },
  }
}
