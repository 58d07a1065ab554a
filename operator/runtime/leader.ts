import type { Logger } from 'pino'
import { Lease } from '../../crds/core.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Clock, pause, systemClock } from '../../store/clock.ts'
import { isStoreError, StoreCode } from '../../store/errors.ts'
import type { Key, Store } from '../../store/port.ts'
import { microTime, nextMove, type Sighting, sight, takenBy } from './lease.ts'

export interface LeaderElectionDeps {
  readonly store: Store
  /** Name and namespace of the Lease; made when it is missing. */
  readonly lease: Key
  /** Unlike any other process's, a later one of the same pod too. */
  readonly identity: string
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly clock?: Clock
  /** Others wait so long after the last renewal that they saw; whole seconds. Default 12,000. */
  readonly leaseMs?: number
  /** Without a renewal for so long the leader has lost; must be shorter by more than clocks drift in that time. Default 8,000. */
  readonly renewDeadlineMs?: number
  /** Between two renewals. Default 2,000. */
  readonly renewMs?: number
  /** Between two looks of a candidate, and between two tries of a renewal that failed. Default 1,000. */
  readonly retryMs?: number
}

/** One candidate for leadership. */
export interface LeaderElection {
  /** Whether this process may act as leader at this very moment: it holds the lease, and others will respect it for a while. */
  readonly leads: () => boolean
  /** For how long from now, in ms, this process may have a write under way: until shortly before another may lead. 0 when it does not lead. */
  readonly writableMs: () => number
  /** Whether it knows who holds the lease: it has reached the API server, and would take over. */
  readonly stands: () => boolean
  /**
   * Stands for election until `signal` aborts; once elected runs `lead`, whose signal aborts when leadership ends. When `signal` aborts,
   * the lease is kept until `lead` has settled, then given back, so that a successor acts at once. Resolves then. Call it once.
   * @throws MooringError `lease_lost` at once, while `lead` may still be running: the process must end; and whatever `lead` throws
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

/**
 * Leader election over a Lease, by client-go's rules (leaderelection.go):
 *
 *     candidate ── free, or not renewed for its own duration ──► leader ── no renewal for renewDeadlineMs, or taken ──► lost
 *         ▲                                                        │
 *         └──────── held by another: look again ───────            └── stopped: given back
 *
 * Every write to the Lease names the revision it was decided on, so of two candidates one fails.
 */
export function createLeaderElection(deps: LeaderElectionDeps): LeaderElection {
  const { store, lease: key, identity, log, clock = systemClock } = deps
  const { leaseMs = 12_000, renewDeadlineMs = 8_000, renewMs = 2_000, retryMs = 1_000 } = deps
  const seconds = Math.ceil(leaseMs / 1_000)
  let held: Lease | undefined
  /** Monotonic moment from which on another may lead; counted from before the request that renewed. */
  let until = -Infinity
  let stands = false

  const leads = (): boolean => held !== undefined && clock.now() < until

  const writableMs = (): number => (leads() ? Math.max(0, until + leaseMs - renewDeadlineMs - MARGIN_MS - clock.now()) : 0)

  function hold(lease: Lease, asked: number): void {
    held = lease
    until = asked + renewDeadlineMs
  }

  /** Writes what was decided on `seen`. @returns false when another was quicker */
  async function take(seen: Lease | undefined): Promise<boolean> {
    const asked = clock.now()
    const spec = takenBy(identity, seconds, { at: new Date(), ...(seen && { before: seen.spec }) })
    try {
      const written = seen
        ? await store.mergePatch(Lease, key, { spec }, { resourceVersion: seen.metadata.resourceVersion })
        : await store.create(Lease, {
            metadata: { name: key.name, ...(key.namespace !== undefined && { namespace: key.namespace }) },
            spec,
          })
      hold(written, asked)
      return true
    } catch (error) {
      if (isStoreError(error, StoreCode.conflict) || isStoreError(error, StoreCode.alreadyExists)) return false
      throw error
    }
  }

  /** Looks once, and takes the lease if that is allowed. @returns the time after which to look again */
  async function attempt(before: Sighting | undefined): Promise<{ readonly seen: Sighting | undefined; readonly ms: number }> {
    const lease = await store.get(Lease, key)
    stands = true
    const seen = lease && sight(lease, before, clock.now())
    const move = seen ? nextMove(seen, identity, clock.now()) : ({ type: 'take' } as const)
    if (move.type === 'wait') return { seen, ms: Math.min(retryMs, move.ms) }
    await take(lease)
    return { seen, ms: retryMs }
  }

  async function elected(signal: AbortSignal): Promise<boolean> {
    let seen: Sighting | undefined
    while (!signal.aborted) {
      let ms = retryMs
      try {
        const outcome = await attempt(seen)
        if (leads()) return true
        if (outcome.seen?.lease.spec.holderIdentity !== seen?.lease.spec.holderIdentity) {
          log.info({ leader: outcome.seen?.lease.spec.holderIdentity ?? '' }, 'another leads')
        }
        ;({ seen, ms } = outcome)
      } catch (error) {
        log.warn({ code: codeOf(error), err: error }, 'could not stand for election')
      }
      await pause(clock, ms, signal)
    }
    return false
  }

  /** @throws MooringError `lease_lost` when another has it */
  async function renew(): Promise<void> {
    const asked = clock.now()
    const spec = { holderIdentity: identity, leaseDurationSeconds: seconds, renewTime: microTime(new Date()) }
    const resourceVersion = held?.metadata.resourceVersion
    try {
      hold(await store.mergePatch(Lease, key, { spec }, { resourceVersion }), asked)
    } catch (error) {
      if (!isStoreError(error, StoreCode.conflict)) throw error
      // Its own renewal, whose answer never came, or somebody's label; or a successor.
      const current = await store.get(Lease, key)
      if (current?.spec.holderIdentity !== identity) throw lost()
      held = current
      throw error
    }
  }

  /** Renews until `done` aborts. @throws MooringError `lease_lost` */
  async function keep(done: AbortSignal): Promise<void> {
    const over = (): boolean => done.aborted
    await pause(clock, renewMs, done)
    while (!over()) {
      let ms = renewMs
      try {
        await beforeDeadline(renew())
      } catch (error) {
        if (error instanceof MooringError && error.code === LEASE_LOST) throw error
        log.warn({ code: codeOf(error) }, 'the lease could not be renewed')
        ms = retryMs
      }
      await pause(clock, Math.max(0, Math.min(ms, until - clock.now())), done)
      if (!over() && clock.now() >= until) throw lost()
    }
  }

  /** A request that hangs must not outlast the lease. @throws MooringError `lease_lost` */
  async function beforeDeadline(renewal: Promise<void>): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>()
    const disarm = clock.after(until - clock.now(), () => {
      reject(lost())
    })
    try {
      await Promise.race([renewal, promise])
    } finally {
      disarm()
    }
  }

  async function release(): Promise<void> {
    const { resourceVersion } = held?.metadata ?? {}
    held = undefined
    until = -Infinity
    try {
      await store.mergePatch(Lease, key, { spec: { holderIdentity: null } }, { resourceVersion })
      log.info({}, 'the lease is given back')
    } catch (error) {
      log.warn({ code: codeOf(error) }, 'the lease could not be given back: it will run out')
    }
  }

  async function run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    if (!(await elected(signal))) return
    log.info({ identity }, 'this process leads')
    const ended = new AbortController()
    const leadership = new AbortController()
    const leading = lead(AbortSignal.any([signal, leadership.signal]))
    const end = (): void => {
      ended.abort()
    }
    try {
      await Promise.all([leading.then(end, end), keep(ended.signal)])
    } catch (error) {
      held = undefined
      leadership.abort(error)
      throw error
    }
    await release()
    await leading
  }

  return { leads, writableMs, stands: () => stands, run }
}

/** For the way of a write that is given up: it may still arrive, and be carried out. */
const MARGIN_MS = 1_000
const LEASE_LOST = 'lease_lost'
const lost = (): MooringError => new MooringError(LEASE_LOST, 'the lease was lost: another process may lead now')
const codeOf = (error: unknown): string => (error instanceof MooringError ? error.code : 'unexpected')
