import type { Socket } from 'node:net'
import type { Peer } from '../balancers/peer.ts'

/** Facts about a connection that are known when it is accepted. */
export interface Accepted {
  readonly socket: Socket
  readonly peer: Peer
  readonly scheme: 'http' | 'https'
  /** Server name of the TLS handshake, in lower case. Null: not known, because a TLS 1.2 session was resumed. */
  readonly serverName: string | undefined | null
  /** Whether the connection exceeds a limit: its requests are answered with an error. */
  readonly surplus: boolean
}
