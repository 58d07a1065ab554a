import type { Buffer } from 'node:buffer'
import type { ObservedRequest } from '../../shared/tunnel-decisions.ts'
import type { Route } from '../route.ts'
import type { RequestHead, Visit } from './head/request-head.ts'
import type { Accepted } from './visitor.ts'

/** Request whose head has arrived. */
export interface Arrival {
  readonly head: RequestHead
  /** Arrival of the head, in milliseconds since the epoch. */
  readonly at: number
  /** Arrival of the head by the monotonic clock. */
  readonly began: number
  readonly scheme: 'http' | 'https'
  /** Server name as in {@link Accepted}. */
  readonly serverName: Accepted['serverName']
  /** Plain address, as {@link plainAddress} returns it. */
  readonly peer: string
  readonly peerPort: number
  readonly protocol: 'http/1.1' | 'h2'
  /** Whether its connection exceeds a limit. */
  readonly surplus: boolean
  /** Beginning of the body that has arrived; `ended`: that is the whole body. */
  readonly first: Buffer | undefined
  readonly ended: boolean
  /** Trailers of a complete body: lines with their CRLF, latin1. */
  readonly trailers: string
}

/** Accepted request, with its tunnel. */
export interface ExchangeInput {
  readonly arrival: Arrival
  readonly route: Route
  readonly visit: Visit
  /** Facts that the decision to serve the request was based on. */
  readonly observed: ObservedRequest
}
