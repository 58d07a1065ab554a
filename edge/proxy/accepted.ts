import type { Socket } from 'node:net'
import type { Peer } from '../balancers/peer.ts'

/** What is known of a connection from its beginning. */
export interface Accepted {
  readonly socket: Socket
  readonly peer: Peer
  readonly scheme: 'http' | 'https'
  /** What the visitor asked TLS for, in lower case; null: not known, for a session of TLS 1.2 was resumed. */
  readonly serverName: string | undefined | null
  /** Whether it is one too many. */
  readonly surplus: boolean
}
