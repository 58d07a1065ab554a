import type { Socket } from 'node:net'
import { plainAddress } from '../../crds/formats/address-list.ts'

/** Who is at the other end of a connection. */
export interface Peer {
  /** Plain, as {@link plainAddress} makes it; empty when it has gone already. */
  readonly address: string
  readonly port: number
}

/** Who a socket itself says is there. */
export function peerOf(socket: Socket): Peer {
  return { address: plainAddress(socket.remoteAddress ?? ''), port: socket.remotePort ?? 0 }
}
