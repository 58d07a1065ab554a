import { isDeepStrictEqual } from 'node:util'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Plan } from '../../crds/plan.ts'
import { USAGE_PERIODS_MAX, type UsagePeriod } from '../../crds/parts/usage-period.ts'
import { createdAtOf } from '../../shared/created-at.ts'
import { isBackupGrowth, withinMaximum, withPeriod } from '../../shared/database-usage.ts'
import { MooringError } from '../../shared/errors.ts'
import { keyOf, type Store } from '../../store/port.ts'
import type { Size } from './resources.ts'

export interface PeriodsInput {
  readonly database: DedicatedDatabase
  readonly server: DatabaseServer
  /** Plan that the spec names; undefined for a Plan that was deleted. */
  readonly plan: Plan | undefined
  /** Size of that plan; undefined when the plan is refused. */
  readonly size: Size | undefined
  /** Backups of the database; undefined without the add-on. */
  readonly archive: DatabaseArchive | undefined
}

export interface PeriodsDeps {
  readonly store: Store
  readonly now: () => Date
  /** Returns the end of the last recorded hour of a database, in milliseconds since the epoch. Absent in an installation without a journal. */
  readonly usageRecordedUntil?: ((database: DedicatedDatabase) => Promise<number>) | undefined
}

/** Code of the error of a change of plan that would drop a period whose use is not recorded. */
export const USAGE_FULL = 'usage_full'

/**
 * Returns the periods of the status (docs/dedicated.md, "Usage"). The first period begins when the server is created, some milliseconds
 * after the database unless something blocks it. Another plan begins a period when the server has the size of that plan, in any state of
 * the database: a server keeps the size of a plan that was in the spec for a moment only. Pure.
 */
export function usagePeriods({ database, server, plan, size, archive }: PeriodsInput, now: Date): readonly UsagePeriod[] {
  const periods = database.status?.usagePeriods ?? []
  const isInForce = plan !== undefined && isDeepStrictEqual(server.spec.size, size)
  if (periods.length > 0 && !isInForce) return periods
  const storage = { storageGiB: server.spec.size?.storageGiB ?? 0, ...storageItemOf(plan) }
  const current = { plan: database.spec.plan, ...storage, ...backupsOf(plan, archive) }
  return withPeriod(periods, current, periods.length > 0 ? now : startOf(database, server))
}

/**
 * Returns the periods with a change that they lack; undefined without a change. A new size of backups waits until the oldest period is recorded.
 * @throws MooringError `usage_full` when the oldest period would be dropped before its use is recorded
 */
export async function plannedPeriods(deps: PeriodsDeps, input: PeriodsInput): Promise<UsagePeriod[] | undefined> {
  const { database } = input
  const periods = usagePeriods(input, deps.now())
  if (periods === database.status?.usagePeriods) return undefined
  const mayWait = isBackupGrowth(database.status?.usagePeriods ?? [], periods)
  const recordedUntil = periods.length > USAGE_PERIODS_MAX ? await recordedUntilOf(deps, database, mayWait) : Infinity
  const kept = withinMaximum(periods, recordedUntil)
  if (!kept && mayWait) return undefined
  if (!kept) throw new MooringError(USAGE_FULL, FULL)
  return [...kept]
}

const FULL = `the plan was changed ${USAGE_PERIODS_MAX} times since the last recorded hour of usage: the change waits until the next hour is recorded`

/**
 * Returns the end of the last recorded hour; Infinity in an installation without a journal.
 * @throws MooringError `usage_full` while the journal is unavailable, for a change that may not wait
 */
async function recordedUntilOf(deps: PeriodsDeps, database: DedicatedDatabase, mayWait: boolean): Promise<number> {
  try {
    return (await deps.usageRecordedUntil?.(database)) ?? Infinity
  } catch (cause) {
    if (mayWait) return 0
    throw new MooringError(USAGE_FULL, FULL, { cause })
  }
}

/**
 * Returns what {@link plannedPeriods} returns, for the present server. The server is read again before a change: a stale one may have
 * the size of a former plan.
 */
export async function presentPeriods(deps: PeriodsDeps, input: PeriodsInput): Promise<UsagePeriod[] | undefined> {
  if (usagePeriods(input, deps.now()) === input.database.status?.usagePeriods) return undefined
  const server = await deps.store.get(DatabaseServer, keyOf(input.server))
  return server && plannedPeriods(deps, { ...input, server })
}

type StorageItem = Pick<UsagePeriod, 'storageItem'>

function storageItemOf(plan: Plan | undefined): StorageItem {
  const item = plan?.spec.billableItems.find(({ kind }) => kind === 'storage')
  return item ? { storageItem: item.id } : {}
}

const MIB = 1_048_576

/** Returns the size of the backups, as the agent reports it, where the plan bills them. */
function backupsOf(plan: Plan | undefined, archive: DatabaseArchive | undefined): Pick<UsagePeriod, 'backupMiB' | 'backupItem'> {
  const item = plan?.spec.billableItems.find(({ kind }) => kind === 'backup')
  const bytes = archive?.metadata.deletionTimestamp === undefined ? archive?.status?.storedBytes : undefined
  return item && bytes !== undefined ? { backupMiB: Math.ceil(bytes / MIB), backupItem: item.id } : {}
}

/**
 * Returns the later of the creation times of database and server. The time of the server is in whole seconds, so it is earlier when both
 * were created within one second.
 */
function startOf({ metadata }: DedicatedDatabase, server: DatabaseServer): Date {
  return new Date(Math.max(Date.parse(createdAtOf(metadata)), Date.parse(server.metadata.creationTimestamp)))
}
