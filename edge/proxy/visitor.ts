import type { Answer } from './errors.ts'
import type { Reply } from './head/response-head.ts'

/** The visitor's side of one exchange: an HTTP/1.x connection, or a stream of HTTP/2. */
export interface Visitor {
  /** Whether chunked bodies are passed to it with their framing; else it is given the payload alone. */
  readonly wire: boolean
  /** Payload of the request's body so far. */
  readonly bytesIn: number
  /** The edge's own answer, whole. Nothing of a response has been given before. */
  answer(answer: Answer): void
  /** A response of class 1xx that is not the last word. */
  interim(reply: Reply): void
  /** Head of the response, with the first part of its body if it is there. `early`: the request has not ended yet. False: hold back until drained. */
  respond(reply: Reply, first: Buffer | undefined, early: boolean): boolean
  /** The protocol changes (RFC 9110, section 15.2.2): from here, bytes are bytes. */
  upgrade(reply: Reply, first: Buffer | undefined): boolean
  /** More of the body. False: hold back until drained. */
  body(chunk: Buffer): boolean
  /** The response is whole. `trailers`: lines with their CRLF, for those who are not given the framing. */
  end(trailers: string): void
  /** After `upgrade`: the backend has ended its side. */
  endBytes(): void
  /** The response cannot be made whole: the visitor must see that it is not. */
  cut(): void
  /** No more of the request's body until `resume`. */
  hold(): void
  resume(): void
}
