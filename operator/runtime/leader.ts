import type { Logger } from 'pino'
import { Lease } from '../../crds/core.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Clock, pause, systemClock } from '../../shared/timers.ts'
import { isStoreError, StoreCode, StoreError, type Key, type Store } from '../../store/port.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { createStoreOver, type KubernetesStore } from '../../store/kubernetes.ts'
import { microTime, nextMove, type Observation, observe, takenBy } from './lease.ts'

export interface LeaderElectionDeps {
  readonly store: Store
  /** Name and namespace of the Lease; created when it is missing. */
  readonly lease: Key
  /** Unique name of this process; a restarted process of the same pod has another one. */
  readonly identity: string
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly clock?: Clock
  /** Time after the last observed renewal after which other candidates may take the lease; whole seconds. Default 12,000. */
  readonly leaseMs?: number
  /** Time without a renewal after which the leader gives up; shorter than `leaseMs` by more than the clock drift. Default 8,000. */
  readonly renewDeadlineMs?: number
  /** Interval of renewals. Default 2,000. */
  readonly renewMs?: number
  /** Interval of a candidate's checks, and of retries after a failed renewal. Default 1,000. */
  readonly retryMs?: number
}

/** One candidate for leadership. */
export interface LeaderElection {
  /** Whether this process is leader at this moment: it holds the lease, and other candidates will respect it for a while. */
  readonly isLeader: () => boolean
  /** Milliseconds from now for which a write may be under way: until shortly before another process may be leader. 0 when not leader. */
  readonly writableMs: () => number
  /** Whether this process knows the holder of the lease: it has reached the API server and would take over. */
  readonly knowsHolder: () => boolean
  /**
   * Stands for election until `signal` aborts; runs `lead` once elected. The signal of `lead` aborts when leadership ends. When `signal`
   * aborts, the lease is kept until `lead` has settled and then released, so that a successor starts at once; `run` then resolves. Call it
   * once.
   * @throws MooringError `lease_lost` at once, while `lead` may still be running: the process must end; any error of `lead`
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

/**
 * Creates a candidate of a leader election over a Lease, by the rules of client-go (leaderelection.go):
 *
 *     candidate ── free, or not renewed for its own duration ──► leader ── no renewal for renewDeadlineMs, or taken ──► lost
 *         ▲                                                        │
 *         └──────── held by another: check again ──────            └── stopped: released
 *
 * Every write to the Lease names the revision it was decided on, so of two candidates one fails.
 */
export function createLeaderElection(deps: LeaderElectionDeps): LeaderElection {
  const { store, lease: key, identity, log, clock = systemClock } = deps
  const { leaseMs = 12_000, renewDeadlineMs = 8_000, renewMs = 2_000, retryMs = 1_000 } = deps
  const seconds = Math.ceil(leaseMs / 1_000)
  let held: Lease | undefined
  /** Monotonic time until which this process is leader, counted from before the request that renewed the lease. */
  let until = -Infinity
  let knowsHolder = false

  const isLeader = (): boolean => held !== undefined && clock.now() < until

  const writableMs = (): number => (isLeader() ? Math.max(0, until + leaseMs - renewDeadlineMs - MARGIN_MS - clock.now()) : 0)

  function hold(lease: Lease, asked: number): void {
    held = lease
    until = asked + renewDeadlineMs
  }

  /** Takes the lease that was observed as `seen`. @returns false when another candidate was faster */
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

  /** Checks the lease once, and takes it if allowed. @returns the time until the next check */
  async function attempt(
    before: Observation | undefined,
  ): Promise<{ readonly seen: Observation | undefined; readonly ms: number }> {
    const lease = await store.get(Lease, key)
    knowsHolder = true
    const seen = lease && observe(lease, before, clock.now())
    const move = seen ? nextMove(seen, identity, clock.now()) : ({ type: 'take' } as const)
    if (move.type === 'wait') return { seen, ms: Math.min(retryMs, move.ms) }
    await take(lease)
    return { seen, ms: retryMs }
  }

  async function elected(signal: AbortSignal): Promise<boolean> {
    let seen: Observation | undefined
    while (!signal.aborted) {
      let ms = retryMs
      try {
        const outcome = await attempt(seen)
        if (isLeader()) return true
        if (outcome.seen?.lease.spec.holderIdentity !== seen?.lease.spec.holderIdentity) {
          log.info({ leader: outcome.seen?.lease.spec.holderIdentity ?? '' }, 'another process is leader')
        }
        ;({ seen, ms } = outcome)
      } catch (error) {
        log.warn({ code: codeOf(error), err: error }, 'leader election failed; it is tried again')
      }
      await pause(clock, ms, signal)
    }
    return false
  }

  /** @throws MooringError `lease_lost` when another process holds the lease */
  async function renew(): Promise<void> {
    const asked = clock.now()
    const spec = { holderIdentity: identity, leaseDurationSeconds: seconds, renewTime: microTime(new Date()) }
    const resourceVersion = held?.metadata.resourceVersion
    try {
      hold(await store.mergePatch(Lease, key, { spec }, { resourceVersion }), asked)
    } catch (error) {
      if (!isStoreError(error, StoreCode.conflict)) throw error
      // The conflict may come from an own renewal whose response was lost, from a changed label, or from a successor.
      const current = await store.get(Lease, key)
      if (current?.spec.holderIdentity !== identity) throw lost()
      held = current
      throw error
    }
  }

  /** Renews the lease until `done` aborts. @throws MooringError `lease_lost` */
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

  /** Bounds a renewal by the lease: a request may hang. @throws MooringError `lease_lost` */
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
      log.info({}, 'lease released')
    } catch (error) {
      log.warn({ code: codeOf(error) }, 'the lease could not be released: it will expire')
    }
  }

  async function run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    if (!(await elected(signal))) return
    log.info({ identity }, 'this process is leader')
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

  return { isLeader, writableMs, knowsHolder: () => knowsHolder, run }
}

/** Time for an aborted write to reach the API server, which may still carry it out. */
const MARGIN_MS = 1_000
const LEASE_LOST = 'lease_lost'
const lost = (): MooringError => new MooringError(LEASE_LOST, 'the lease is lost: another process may be leader now')
const codeOf = (error: unknown): string => (error instanceof MooringError ? error.code : 'unexpected')

/**
 * Store of the leader: every request of it and of its `client` goes through {@link createFencedClient}. The caller owns `client`, which
 * `close` of the store closes too.
 */
export function createFencedStore(
  client: KubernetesClient,
  deps: { readonly election: Pick<LeaderElection, 'writableMs'>; readonly fieldManager: string },
): KubernetesStore {
  const { election, fieldManager } = deps
  return createStoreOver(
    createFencedClient(client, () => election.writableMs()),
    { fieldManager },
  )
}

/**
 * Client that sends writes (all requests but GET) only while this process is leader, and aborts each before another replica may become
 * leader. A write that hangs in the network would otherwise be carried out after a decision of the next leader. Reads always pass.
 * @param writableMs how long from now this process may have a write under way, in ms; 0 when it is not leader
 */
export function createFencedClient(client: KubernetesClient, writableMs: () => number): KubernetesClient {
  return {
    /** @throws StoreError `unavailable` also for a write of a process that is not leader */
    async request(request) {
      if (request.method === 'GET') return client.request(request)
      const timeoutMs = writableMs()
      if (timeoutMs <= 0) throw new StoreError(StoreCode.unavailable, 'write rejected: this process is not the leader')
      return client.request({ ...request, timeoutMs: Math.min(timeoutMs, request.timeoutMs ?? timeoutMs) })
    },
    open: (request, signal) => client.open(request, signal),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}
