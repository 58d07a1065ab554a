import type { Channel, ChannelEvents } from '../channels/channel.ts'
import type { Origin, Session } from '../sessions.ts'

/** Outcome of opening a bridge. Exactly one method is called, once. */
export interface BridgeStart {
  opened(): void
  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void
}

/**
 * Joins a peer's channel with a channel of a local session. Each side takes from the other only what it has room for: nothing is queued
 * in between.
 *
 *     visitor ── peer ══ link ══ far ◄─► near ══ SSH ══ client ── target
 */
export class Bridge implements ChannelEvents {
  readonly #start: BridgeStart
  readonly #near: Channel
  #far: Channel | undefined
  #isOpen = false
  #farIsFull = false
  /** Action on the far side once it has taken all data. */
  #then: 'nothing' | 'end' | 'close' = 'nothing'
  #hasEnded = false

  /** Events for the peer's channel. */
  readonly farEvents: ChannelEvents

  constructor({ session, origin }: { readonly session: Session; readonly origin: Origin }, start: BridgeStart) {
    this.#start = start
    const near = session.open(origin, this)
    this.#near = near
    this.farEvents = {
      opened: () => undefined,
      refused: () => near.destroy(),
      data: (chunk) => {
        if (!near.write(chunk)) this.#far?.pause()
      },
      drained: () => this.#farDrained(),
      ended: () => near.end(),
      closed: () => near.destroy(),
    }
  }

  /** Attaches the peer's channel, which was created with {@link farEvents}. */
  attach(far: Channel): void {
    this.#far = far
  }

  opened(): void {
    this.#isOpen = true
    this.#start.opened()
  }

  refused(why: 'connect_failed' | 'prohibited' | 'session_lost'): void {
    this.#start.refused(why)
  }

  data(chunk: Buffer): void {
    if (this.#far?.write(chunk) !== false) return
    this.#farIsFull = true
    this.#near.pause()
  }

  drained(): void {
    this.#far?.resume()
  }

  ended(): void {
    this.#hasEnded = true
    this.#finish('end')
  }

  closed({ lost }: { readonly lost: boolean }): void {
    if (lost || !this.#isOpen) this.#finish('close')
  }

  #farDrained(): void {
    this.#farIsFull = false
    if (this.#then === 'nothing') this.#near.resume()
    else this.#finish(this.#then)
  }

  /**
   * Ends or closes the far side, after the data that the target sent before. A close without an end tells the peer that the target's data is
   * incomplete.
   */
  #finish(how: 'end' | 'close'): void {
    if (this.#farIsFull) {
      this.#then = how
      return
    }
    if (this.#hasEnded) this.#far?.end()
    if (how === 'close') this.#far?.destroy()
  }
}
