import type { Logger } from 'pino'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { DatabaseRecords, UsageRecord } from '../../journal/databases.ts'
import { AUDIT_DAYS } from '../../journal/port.ts'
import { HOUR_MS, usageOf } from '../../shared/database-usage.ts'
import { type Clock, pause, systemClock, whenAborted } from '../../shared/timers.ts'
import type { Cache } from '../../store/cache.ts'
import { type Key, keyOf, keyToString } from '../../store/port.ts'

export interface UsageRecorderDeps {
  readonly databases: Pick<Cache<typeof DedicatedDatabase>, 'get' | 'list' | 'onChange' | 'synced'>
  readonly records: Pick<DatabaseRecords, 'keepUsage' | 'usageUntil'>
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly now: () => Date
  readonly clock?: Clock
}

export interface UsageRecorder {
  /** Records the use of all databases hour by hour until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Records the use of a database that is being deleted, until the request of its deletion.
   * @throws MooringError while the journal is unavailable
   */
  finish(database: DedicatedDatabase): Promise<void>
  /**
   * Returns the end of the last recorded hour of a database, in milliseconds since the epoch; 0 without one.
   * @throws MooringError while the journal is unavailable
   */
  recordedUntil(database: DedicatedDatabase): Promise<number>
}

const POLL_MS = 60_000
/** Minimum time between the end of an hour and its record, in milliseconds: the cache may lack a change within the hour until then. */
const SETTLE_MS = 60_000
/** Maximum number of records in one write. */
const BATCH = 1_000
/** Maximum number of databases in one query. */
const DATABASES = 200
/** Maximum age of use that is recorded: one day less than the retention, so that a new record is not removed and written again. */
const KEPT_MS = (AUDIT_DAYS - 1) * 24 * HOUR_MS

/**
 * Creates the recorder of usage (docs/dedicated.md, "Usage"). The hours to record follow from the periods in the status of a database and
 * from the last hour in the journal. So hours without an operator or a journal are recorded later. In memory are only databases that
 * disappeared since the last poll, such as one whose finalizer a client removed.
 */
export function createUsageRecorder({ databases, records, log, now, clock = systemClock }: UsageRecorderDeps): UsageRecorder {
  let failing = false
  /** End of the last hour that was recorded for all databases, in milliseconds since the epoch. */
  let done = 0
  const departures = createDepartures(databases, now)

  /** Records the use of databases up to `to`. */
  async function record(found: readonly DedicatedDatabase[], to: number): Promise<void> {
    const until = await records.usageUntil(found.map(({ metadata }) => metadata.uid))
    const fresh = found.flatMap((database) => recordsOf(database, { from: until.get(database.metadata.uid) ?? 0, to }))
    for (let start = 0; start < fresh.length; start += BATCH) await records.keepUsage(fresh.slice(start, start + BATCH))
  }

  function recordsOf({ metadata, status }: DedicatedDatabase, { from, to }: { from: number; to: number }): UsageRecord[] {
    const { uid: database, name, namespace = '' } = metadata
    const oldest = Math.floor((now().getTime() - KEPT_MS) / HOUR_MS) * HOUR_MS
    const span = { from: Math.max(from, oldest), to }
    const end = metadata.deletionTimestamp === undefined ? Infinity : Date.parse(metadata.deletionTimestamp)
    return usageOf(status?.usagePeriods ?? [], span, end).map((hour) => ({ database, namespace, name, ...hour }))
  }

  async function recordAll(all: readonly DedicatedDatabase[], to: number): Promise<void> {
    for (let start = 0; start < all.length; start += DATABASES) await record(all.slice(start, start + DATABASES), to)
  }

  async function poll(): Promise<void> {
    const ended = departures.ended()
    await recordAll(ended, Infinity)
    departures.forget(ended)
    const to = Math.floor((now().getTime() - SETTLE_MS) / HOUR_MS) * HOUR_MS
    if (to <= done) return
    await recordAll(databases.list(), to)
    done = to
  }

  async function step(): Promise<void> {
    try {
      await poll()
      if (failing) log.info({}, 'usage of dedicated databases is recorded again')
      failing = false
    } catch (error) {
      if (!failing) log.warn({ err: error }, 'usage of dedicated databases was not recorded; it is tried again')
      failing = true
    }
  }

  return {
    async run(signal) {
      const unfollow = departures.follow()
      await Promise.race([databases.synced(), whenAborted(signal)])
      while (!signal.aborted) {
        await step()
        await pause(clock, POLL_MS, signal)
      }
      unfollow()
    },
    finish: (database) => record([database], Date.parse(database.metadata.deletionTimestamp ?? now().toISOString())),
    async recordedUntil({ metadata: { uid } }) {
      return (await records.usageUntil([uid])).get(uid) ?? 0
    },
  }
}

/** Collects databases that have disappeared, in their last state. */
function createDepartures(databases: UsageRecorderDeps['databases'], now: () => Date) {
  const present = new Map<string, DedicatedDatabase>()
  const gone = new Set<DedicatedDatabase>()

  function onChange(key: Key): void {
    const id = keyToString(key)
    const [before, current] = [present.get(id), databases.get(key)]
    if (before && before.metadata.uid !== current?.metadata.uid) gone.add(endedAt(before, now()))
    if (current) present.set(id, current)
    else present.delete(id)
  }

  return {
    /** Follows the databases until the returned function is called. */
    follow() {
      present.clear()
      const unregister = databases.onChange(onChange)
      databases.list().forEach((database) => onChange(keyOf(database)))
      return unregister
    },
    ended: () => [...gone],
    forget: (recorded: readonly DedicatedDatabase[]) => {
      recorded.forEach((database) => gone.delete(database))
    },
  }
}

/** Returns a database whose use ends with the request of its deletion, or now when none was seen. */
function endedAt({ metadata, ...rest }: DedicatedDatabase, now: Date): DedicatedDatabase {
  return { ...rest, metadata: { ...metadata, deletionTimestamp: metadata.deletionTimestamp ?? now.toISOString() } }
}
