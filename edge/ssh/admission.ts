import type { SshLimits } from './limits.ts'

/** Connection that has not logged in, as far as its admission is concerned. */
export interface Applicant {
  readonly sourceKey: string
  /** Time of accept, in milliseconds of a monotonic clock. */
  readonly began: number
  /** Starts its key exchange. */
  begin(): void
  /** Ends it with a sentence: its slot goes to a newer connection of its source. */
  giveWay(): void
}

export interface AdmissionDeps {
  readonly limits: Pick<SshLimits, 'handshakesPerSource' | 'giveWayMs'>
  /** Whether a source has failed so often that its key exchanges are spread over time. */
  isSlow(source: string): boolean
}

/**
 * Connections that have not logged in, by source. A source has a number of slots. When all are taken, its oldest connection is closed
 * if it has had `giveWayMs`, so that idle connections do not block valid logins. Connections of a source with many failures exchange
 * keys in a queue at a fixed rate: a flood costs a bounded share of a processor, and a valid key behind it waits for seconds at most.
 */
export class LoginQueue {
  readonly #deps: AdmissionDeps
  /** Connections in order of accept. */
  readonly #bySource = new Map<string, Set<Applicant>>()
  /** Connections of slow sources that wait for their key exchange, in order of accept. */
  readonly #queued = new Map<string, Set<Applicant>>()

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
  }

  /**
   * Whether a connection of this source gets a slot now; closes the oldest one for it if that has had its time. `now`: monotonic clock.
   */
  hasSlot(source: string, now: number): boolean {
    const there = this.#bySource.get(source)
    const { handshakesPerSource, giveWayMs } = this.#deps.limits
    if ((there?.size ?? 0) < handshakesPerSource) return true
    const [oldest] = there ?? []
    if (!oldest || now - oldest.began < giveWayMs) return false
    oldest.giveWay()
    return (this.#bySource.get(source)?.size ?? 0) < handshakesPerSource
  }

  /** Takes a slot, even above the limit. The key exchange starts at once, or in the queue of the source. */
  enter(applicant: Applicant): void {
    const { sourceKey } = applicant
    addTo(this.#bySource, sourceKey, applicant)
    if (this.#deps.isSlow(sourceKey)) addTo(this.#queued, sourceKey, applicant)
    else applicant.begin()
  }

  /** Frees the slot of a connection that has logged in or has ended. */
  leave(applicant: Applicant): void {
    removeFrom(this.#bySource, applicant.sourceKey, applicant)
    removeFrom(this.#queued, applicant.sourceKey, applicant)
  }

  /** Starts the key exchange of the first `count` connections of each queue. */
  release(count: number): void {
    for (const [source, queue] of this.#queued) {
      for (const applicant of [...queue].slice(0, count)) {
        removeFrom(this.#queued, source, applicant)
        applicant.begin()
      }
    }
  }
}

function addTo(sets: Map<string, Set<Applicant>>, key: string, applicant: Applicant): void {
  sets.set(key, (sets.get(key) ?? new Set()).add(applicant))
}

function removeFrom(sets: Map<string, Set<Applicant>>, key: string, applicant: Applicant): void {
  const set = sets.get(key)
  set?.delete(applicant)
  if (set?.size === 0) sets.delete(key)
}
