import { HeadReader } from '../http1/head-reader.ts'
import { readResponseHead, type ResponseHead } from '../head/response-head.ts'
import type { Channel, ChannelEvents } from '../../channels/channel.ts'
import type { Origin, Session } from '../../session.ts'

/** Reasons for the end of an upstream connection. `ended` and `lost` occur before or during a response. */
export type UpstreamEnd = 'connect_failed' | 'prohibited' | 'session_lost' | 'ended' | 'lost'

/** Request that uses an upstream connection. */
export interface UpstreamUser {
  upstreamData(chunk: Buffer): void
  upstreamDrained(): void
  /** The target ended its side; bytes for it may still be in flight. */
  upstreamEnded(): void
  /** Last call: the channel was refused, or closed. */
  upstreamClosed(end: UpstreamEnd): void
}

/** Channel to the backend that serves one request after the other. */
export class UpstreamConnection implements ChannelEvents {
  readonly session: Session
  readonly channel: Channel
  /** Reader of the response heads on this connection. */
  readonly heads = new HeadReader<ResponseHead | undefined>(readResponseHead, undefined)
  user: UpstreamUser | undefined
  /** Number of requests that have used it. */
  uses = 0
  idleSince = 0
  /** Period of the target in which it was opened. Undefined: it serves one request only. */
  period: object | undefined
  readonly #onIdleEnd: (connection: UpstreamConnection) => void

  /** `onIdleEnd` is called when it ends or receives bytes while no request uses it. */
  constructor(session: Session, origin: Origin, onIdleEnd: (connection: UpstreamConnection) => void) {
    this.session = session
    this.#onIdleEnd = onIdleEnd
    this.channel = session.open(origin, this)
  }

  opened(): void {
    // Nothing to do: bytes that were written before are sent then.
  }

  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void {
    this.#end(why)
  }

  data(chunk: Buffer): void {
    if (this.user) this.user.upstreamData(chunk)
    else this.discard()
  }

  drained(): void {
    this.user?.upstreamDrained()
  }

  ended(): void {
    if (this.user) this.user.upstreamEnded()
    else this.discard()
  }

  closed({ lost }: { readonly lost: boolean }): void {
    this.#end(lost ? 'lost' : 'ended')
  }

  /** Closes the connection without a further event to its user. */
  discard(): void {
    if (!this.user) this.#onIdleEnd(this)
    this.user = undefined
    this.channel.destroy()
  }

  #end(end: UpstreamEnd): void {
    const { user } = this
    this.user = undefined
    if (user) user.upstreamClosed(end)
    else this.#onIdleEnd(this)
  }
}
