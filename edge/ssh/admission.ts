import type { SshLimits } from './limits.ts'

/** A connection without a login, as far as its admission goes. */
export interface Applicant {
  readonly sourceKey: string
  /** Milliseconds of a monotonic clock at which it was accepted. */
  readonly began: number
  /** Lets it exchange keys. */
  begin(): void
  /** Ends it, with a sentence: its slot goes to a newer connection of its source. */
  giveWay(): void
}

export interface AdmissionDeps {
  readonly limits: Pick<SshLimits, 'handshakesPerSource' | 'giveWayMs'>
  /** Whether a source has failed so often that its key exchanges are spread over time. */
  isSlow(source: string): boolean
}

/**
 * Connections that have not logged in, by source. A source has a number of slots. When they are taken, its oldest connection gives way if it has
 * had its time, so that connections that only wait lock no valid login out. A source with many failures exchanges keys in a
 * queue at a fixed rate: a flood costs a bounded share of a core, and a valid key behind it waits for seconds at most.
 */
export class Admission {
  readonly #deps: AdmissionDeps
  /** In the order in which they came. */
  readonly #bySource = new Map<string, Set<Applicant>>()
  /** Those of slow sources that have not begun, in the order in which they came. */
  readonly #queued = new Map<string, Set<Applicant>>()

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
  }

  /** Whether a connection of this source gets a slot now; frees one for it where the oldest has had its time. `now`: of a monotonic clock. */
  hasSlot(source: string, now: number): boolean {
    const there = this.#bySource.get(source)
    const { handshakesPerSource, giveWayMs } = this.#deps.limits
    if ((there?.size ?? 0) < handshakesPerSource) return true
    const [oldest] = there ?? []
    if (!oldest || now - oldest.began < giveWayMs) return false
    oldest.giveWay()
    return (this.#bySource.get(source)?.size ?? 0) < handshakesPerSource
  }

  /** Takes a slot, whether there is one or not. The applicant begins at once, or in the queue of its source. */
  enter(applicant: Applicant): void {
    const { sourceKey } = applicant
    addTo(this.#bySource, sourceKey, applicant)
    if (this.#deps.isSlow(sourceKey)) addTo(this.#queued, sourceKey, applicant)
    else applicant.begin()
  }

  /** It has logged in, or has ended. */
  leave(applicant: Applicant): void {
    removeFrom(this.#bySource, applicant.sourceKey, applicant)
    removeFrom(this.#queued, applicant.sourceKey, applicant)
  }

  /** Lets the first `count` of each queue begin. */
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
