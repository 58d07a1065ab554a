import type { Socket } from 'node:net'
import { plainAddress } from '../../crds/formats/address-list.ts'

/** Address at the other end of a connection. */
export interface Peer {
  /** Plain address, as {@link plainAddress} returns it; empty when the connection has ended. */
  readonly address: string
  readonly port: number
}

/** Returns the peer of the socket itself. */
export function peerOf(socket: Socket): Peer {
  return { address: plainAddress(socket.remoteAddress ?? ''), port: socket.remotePort ?? 0 }
}
