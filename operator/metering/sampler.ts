import type { Logger } from 'pino'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { DatabaseRecords, DatabaseSample, KeptSample } from '../../journal/databases.ts'
import { type Backoff, backoffMs, type Clock, pause, systemClock, whenAborted } from '../../shared/timers.ts'
import type { Cache } from '../../store/cache.ts'
import { archiveKeyOf } from '../dedicated-database/backups.ts'
import type { Measured } from '../engines/engine.ts'
import type { Admins } from '../server/admins.ts'
import { type Measurement, sampleOf } from './sample.ts'

export interface SamplerDeps {
  readonly databases: Pick<Cache<typeof DedicatedDatabase>, 'list' | 'synced'>
  readonly archives: Pick<Cache<typeof DatabaseArchive>, 'get'>
  readonly admins: Pick<Admins, 'get'>
  readonly records: Pick<DatabaseRecords, 'keepSamples'>
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly now: () => Date
  readonly clock?: Clock
}

/** Last sample of a database. */
export interface LatestSample {
  readonly namespace: string
  readonly name: string
  readonly sample: DatabaseSample
}

export interface Sampler {
  /** Samples the databases with monitoring until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Returns the last sample of each database with monitoring; databases whose last sample is older than two intervals are left out. */
  latest(): readonly LatestSample[]
}

/** Interval of the samples of a database, in milliseconds. */
const EVERY_MS = 30_000
/** Interval of the checks for databases that are due. A database whose monitoring begins, or whose server starts, is sampled within it. */
const POLL_MS = 5_000
/** Maximum duration of a measurement, in milliseconds. */
const BOUND_MS = 10_000
/** Maximum number of samples that wait while the journal is unavailable. Above it, the oldest are dropped. */
const WAITING = 5_000

/** Delay of the next measurement after consecutive ones that failed: a measurement that never succeeds must not load the server all the time. */
const BACKOFF: Backoff = { baseMs: POLL_MS, maxMs: 120_000 }

/** State of the samples of one database. */
interface Sampled {
  /** Number of measurements that failed or took too long since the last sample. */
  readonly failures: number
  /** Time of the next sample, in milliseconds of a monotonic clock. */
  readonly dueAt: number
  readonly before: Measurement | undefined
  readonly latest: LatestSample | undefined
}

/**
 * Creates the sampler of dedicated databases. It measures all servers concurrently, each over its own administrator's connection, with at
 * most one measurement of a server at a time. So a server that does not respond delays neither other servers nor a reconcile.
 */
export function createSampler({ databases, archives, admins, records, log, now, clock = systemClock }: SamplerDeps): Sampler {
  const states = new Map<string, Sampled>()
  const underWay = new Set<string>()
  let waiting: readonly KeptSample[] = []
  let keeping: Promise<void> | undefined
  let failing = false

  const isMonitored = ({ metadata, spec }: DedicatedDatabase): boolean =>
    spec.monitoring && metadata.deletionTimestamp === undefined

  /**
   * Measures one database. Returns undefined when its server is down, is being measured, does not respond in time, or lacks the database.
   */
  async function sample(database: DedicatedDatabase): Promise<KeptSample | undefined> {
    const { uid, name, namespace = '' } = database.metadata
    const measuring = measure(database)
    if (!measuring) return undefined
    const measured = await measuring
    if (!measured) {
      postpone(uid)
      return undefined
    }
    const at = now().getTime()
    const before = states.get(uid)?.before
    const taken = sampleOf({ at, measured, archive: archives.get(archiveKeyOf(uid)) }, before)
    // The second sample follows soon, since the first one has no rates.
    const dueAt = clock.now() + (before ? EVERY_MS : 0)
    states.set(uid, { failures: 0, dueAt, before: { at, measured }, latest: { namespace, name, sample: taken } })
    return { database: uid, ...taken }
  }

  /** Lets the next measurement wait after one that failed or took too long. */
  function postpone(uid: string): void {
    const state = states.get(uid)
    const failures = (state?.failures ?? 0) + 1
    const dueAt = clock.now() + backoffMs(BACKOFF, failures)
    states.set(uid, { before: undefined, latest: undefined, ...state, failures, dueAt })
  }

  /** Begins a measurement. Returns undefined when the server is down or is being measured. */
  function measure({ metadata: { uid }, status }: DedicatedDatabase): Promise<Measured | undefined> | undefined {
    const open = admins.get(status?.serverRef?.name ?? '')
    if (!open || status?.name === undefined || underWay.has(uid)) return undefined
    underWay.add(uid)
    return withinBound(open.admin.measure(status.name).finally(() => underWay.delete(uid)))
  }

  /** Returns the result of a measurement; undefined for one that fails, or takes too long. */
  function withinBound<T>(measuring: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const cancel = clock.after(BOUND_MS, () => resolve(undefined))
      measuring.then(resolve, () => resolve(undefined)).finally(cancel)
    })
  }

  /** Starts the measurement of each database that is due. */
  function poll(): void {
    const monitored = databases.list().filter(isMonitored)
    const uids = new Set(monitored.map(({ metadata }) => metadata.uid))
    for (const uid of states.keys()) if (!uids.has(uid)) states.delete(uid)
    for (const database of monitored) {
      if ((states.get(database.metadata.uid)?.dueAt ?? 0) <= clock.now()) void sampleAndKeep(database)
    }
    void keep()
  }

  async function sampleAndKeep(database: DedicatedDatabase): Promise<void> {
    const taken = await sample(database)
    if (!taken) return
    waiting = [...waiting, taken].slice(-WAITING)
    await keep()
  }

  /** Writes all samples that wait, one write at a time. Never rejects. */
  function keep(): Promise<void> {
    keeping ??= flush().finally(() => {
      keeping = undefined
    })
    return keeping
  }

  async function flush(): Promise<void> {
    try {
      while (waiting.length > 0) {
        const batch = new Set(waiting)
        await records.keepSamples([...batch])
        waiting = waiting.filter((each) => !batch.has(each))
        if (failing) log.info({}, 'samples of dedicated databases are kept again')
        failing = false
      }
    } catch (error) {
      if (!failing) log.warn({ err: error }, 'samples of dedicated databases were not kept; it is tried again')
      failing = true
    }
  }

  return {
    async run(signal) {
      await Promise.race([databases.synced(), whenAborted(signal)])
      while (!signal.aborted) {
        poll()
        await pause(clock, POLL_MS, signal)
      }
    },
    latest() {
      const oldest = now().getTime() - 2 * EVERY_MS
      return [...states.values()].flatMap(({ latest }) => (latest && latest.sample.at >= oldest ? [latest] : []))
    },
  }
}
