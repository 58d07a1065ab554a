import { backupOf, corruptOf, logOf, parseQuietKey, parseWalKey, startOf } from './keys.ts'
import type { Manifest } from './manifest.ts'
import { finishOf, type Interval } from './restorable.ts'

const DAY_MS = 86_400_000
/** Age in ms at which a backup without a manifest counts as abandoned by its agent. */
const ABANDONED_MS = 3_600_000

/** Objects in the repository, and their retention. */
export interface RetentionInput {
  /** All objects, by key below the prefix. */
  readonly keys: readonly string[]
  readonly manifests: readonly Manifest[]
  readonly intervals: readonly Interval[]
  /** Present time in ms. */
  readonly now: number
  readonly retentionDays: number
}

/**
 * Returns the keys that no restore of a time within the last `retentionDays` needs. Manifests come first: a backup without its manifest does not
 * count, so a removal may stop after any key.
 */
export function expiredKeys(kept: RetentionInput): readonly string[] {
  const { keys, manifests, now } = kept
  const needed = neededBackups(kept)
  const known = new Set(manifests.map(({ id }) => id))
  const bases = manifests.filter(({ id }) => needed.has(id))
  const isExpiredBackup = (id: string): boolean => (known.has(id) ? !needed.has(id) : now - startOf(id) > ABANDONED_MS)
  const isExpired = (key: string): boolean => {
    const id = backupOf(key)
    const quiet = parseQuietKey(key)
    if (quiet) return quiet.until < now - kept.retentionDays * DAY_MS
    return id === undefined ? isExpiredWal(key, bases) : isExpiredBackup(id)
  }
  const expired = keys.filter(isExpired)
  const gone = new Set(expired)
  const notes = keys.filter((key) => {
    const about = corruptOf(key)
    return about !== undefined && (gone.has(about) || !keys.includes(about))
  })
  return [...expired.filter(isManifest), ...expired.filter((key) => !isManifest(key)), ...notes]
}

const isManifest = (key: string): boolean => key.endsWith('/manifest.json')

/**
 * A backup is needed until another of the same interval can restore the oldest time of the retention. The newest backup is needed whatever
 * its age.
 */
function neededBackups({ manifests, intervals, now, retentionDays }: RetentionInput): ReadonlySet<string> {
  const oldest = now - retentionDays * DAY_MS
  const needed = new Set<string>()
  const recent = newestOf(intervals)
  for (const { bases, to } of intervals) {
    if (to < oldest) continue
    const first = Math.max(
      0,
      bases.findLastIndex((base) => finishOf(base) <= oldest),
    )
    for (const base of thinned(bases.slice(first), recent)) needed.add(base.id)
  }
  // A backup that cannot be restored now, for want of an object, stays for its time: the object may come back.
  const restorable = new Set(intervals.flatMap(({ bases }) => bases.map(({ id }) => id)))
  for (const base of manifests) if (!restorable.has(base.id) && finishOf(base) >= oldest) needed.add(base.id)
  const newest = intervals.at(-1)?.bases.at(-1)
  if (newest) needed.add(newest.id)
  return needed
}

/** Number of newest backups that stay, however close they are to each other. */
const RECENT = 20
/** Minimum interval of older backups in ms: scheduled ones, which are a day apart, all stay. */
const SPACING_MS = 20 * 3_600_000

function newestOf(intervals: readonly Interval[]): ReadonlySet<Manifest> {
  const bases = intervals.flatMap((interval) => interval.bases)
  return new Set(bases.sort((a, b) => finishOf(b) - finishOf(a)).slice(0, RECENT))
}

/**
 * Returns the backups without those that follow another one closely. Each backup is a copy of the whole database, and a client may request
 * them all day long. The first one stays, so every time stays restorable: its restore replays more of the log.
 */
function thinned(bases: readonly Manifest[], recent: ReadonlySet<Manifest>): readonly Manifest[] {
  let last = -Infinity
  return bases.filter((base) => {
    const isNeeded = recent.has(base) || finishOf(base) - last >= SPACING_MS
    if (isNeeded) last = finishOf(base)
    return isNeeded
  })
}

/** WAL before the first segment of the oldest backup of its log is not needed, nor is that of a log without backups. */
function isExpiredWal(key: string, bases: readonly Manifest[]): boolean {
  const { log, segment } = parseWalKey(key) ?? {}
  if (!segment) return false
  const starts = bases.filter((base) => logOf(base) === log).map(({ startSegment }) => startSegment)
  return segment.number < Math.min(...starts, Infinity)
}
