import { HeadReader } from '../http1/head-reader.ts'
import { readResponseHead, type ResponseHead } from '../head/response-head.ts'
import type { Channel, ChannelEvents } from '../../channels/channel.ts'
import type { Origin, Session } from '../../session.ts'

/** Why a way to the backend is of no more use. `ended` and `lost` come before an answer, or in its middle. */
export type UpstreamEnd = 'connect_failed' | 'prohibited' | 'session_lost' | 'ended' | 'lost'

/** The request that a link serves just now. */
export interface UpstreamUser {
  upstreamData(chunk: Buffer): void
  upstreamDrained(): void
  /** The target ended its side; what it was sent may still be on the way. */
  upstreamEnded(): void
  /** Last call: refused, or closed. */
  upstreamClosed(end: UpstreamEnd): void
}

/** A channel that serves one request after the other. */
export class UpstreamConnection implements ChannelEvents {
  readonly session: Session
  readonly channel: Channel
  /** Reads the heads of the responses that come by it. */
  readonly heads = new HeadReader<ResponseHead | undefined>(readResponseHead, undefined)
  user: UpstreamUser | undefined
  /** Requests that it has been given. */
  uses = 0
  idleSince = 0
  /** What it was opened under, as its pool has it; undefined: it is not kept for another request. */
  period: object | undefined
  gone = false
  readonly #onIdleEnd: (connection: UpstreamConnection) => void

  /** `onIdleEnd` is told when it ends, or speaks unasked, while no request has it. */
  constructor(session: Session, origin: Origin, onIdleEnd: (connection: UpstreamConnection) => void) {
    this.session = session
    this.#onIdleEnd = onIdleEnd
    this.channel = session.open(origin, this)
  }

  opened(): void {
    // Nothing waits for it: what is written before is sent then.
  }

  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void {
    this.#leave(why)
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
    this.#leave(lost ? 'lost' : 'ended')
  }

  /** Closes it; nobody is told any more. */
  discard(): void {
    if (!this.user) this.#onIdleEnd(this)
    this.user = undefined
    this.channel.destroy()
  }

  #leave(end: UpstreamEnd): void {
    this.gone = true
    const { user } = this
    this.user = undefined
    if (user) user.upstreamClosed(end)
    else this.#onIdleEnd(this)
  }
}
