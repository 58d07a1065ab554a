import type { Socket } from 'node:net'
import type { Peer } from '../balancers/peer.ts'
import type { Answer } from './errors.ts'
import type { Reply } from './head/response-head.ts'

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

/** The visitor's side of one exchange: an HTTP/1.x connection or an HTTP/2 stream. */
export interface Visitor {
  /** Whether chunked bodies are forwarded with their framing; otherwise only the payload is. */
  readonly wire: boolean
  /** Payload bytes of the request's body so far. */
  readonly bytesIn: number
  /** Sends the edge's own response, complete. No part of another response was sent before. */
  answer(answer: Answer): void
  /** Sends an interim response (1xx). */
  interim(reply: Reply): void
  /**
   * Sends the head of the response, with the first part of its body if available. `early`: the request has not ended yet. Returns false
   * when the caller must wait until drained.
   */
  respond(reply: Reply, first: Buffer | undefined, early: boolean): boolean
  /** Sends the response to an upgrade (RFC 9110, section 15.2.2); bytes are forwarded as they are from then on. */
  upgrade(reply: Reply, first: Buffer | undefined): boolean
  /** Sends more of the body. Returns false when the caller must wait until drained. */
  body(chunk: Buffer): boolean
  /** Ends the response. `trailers`: lines with their CRLF, used when the framing is not forwarded. */
  end(trailers: string): void
  /** Ends the backend's side after an upgrade. */
  endBytes(): void
  /** Aborts an incomplete response, visibly to the visitor. */
  cut(): void
  /** Stops the request's body until `resume`. */
  hold(): void
  resume(): void
}
