import type { Socket } from 'node:net'
import type { Peer } from '../balancers/peer.ts'

/** What is known of a connection from its beginning. */
export interface Accepted {
  readonly socket: Socket
  readonly peer: Peer
  readonly scheme: 'http' | 'https'
  readonly serverName: string | undefined
  /** Whether it is one too many. */
  readonly surplus: boolean
}
