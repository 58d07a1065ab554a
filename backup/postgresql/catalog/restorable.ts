import type { RestoreWindow } from '../../agent-state.ts'
import { type LogId, logOf } from './keys.ts'
import type { Manifest } from './manifest.ts'

/** Objects of one database in the repository that count for its restorable window. */
export interface Archived {
  /** Backups all of whose objects are there and are not known to be corrupt. */
  readonly bases: readonly Manifest[]
  /** Runs of segments, in order. */
  readonly wal: ReadonlyMap<LogId, readonly Run[]>
  readonly quiet: readonly Quiet[]
}

/** Period in which nothing was committed: from a mark at `markedAt` to `until`, both in ms since the epoch. */
export interface Quiet {
  readonly markedAt: number
  readonly until: number
}

/** Adds the quiet time after the last mark, if there is one. */
export const withQuiet = (archived: Archived, last: Quiet | undefined): Archived =>
  last ? { ...archived, quiet: [...archived.quiet, last] } : archived

/** Segments without a gap between them. */
export interface Run {
  readonly first: number
  readonly last: number
  /** In the order of the segments. */
  readonly marks: readonly Mark[]
  /** The mark with the latest time: the last one, unless the machine's clock was set back. */
  readonly latest: Mark | undefined
}

export interface Mark {
  readonly segment: number
  readonly at: number
}

/** Points in time that can be restored without a gap, and the backups that they start from. */
export interface Interval {
  /** Both ends in ms since the epoch, included. */
  readonly from: number
  readonly to: number
  readonly log: LogId
  /** Oldest first. */
  readonly bases: readonly Manifest[]
  readonly lastMark: Mark
  /** Marks in the order of the segments. */
  readonly marks: readonly Mark[]
}

/** Returns the intervals that can be restored, the one with the latest end last. */
export function intervalsOf({ bases, wal, quiet }: Archived): readonly Interval[] {
  const intervals = [...wal].flatMap(([log, runs]) => runs.map((run) => intervalOf({ log, run, bases, quiet })))
  return intervals.filter((interval) => interval !== undefined).sort((a, b) => a.to - b.to)
}

interface RunOf extends Pick<Archived, 'bases' | 'quiet'> {
  readonly log: LogId
  readonly run: Run
}

function intervalOf({ log, run, bases, quiet }: RunOf): Interval | undefined {
  const { latest, first, marks } = run
  if (!latest) return undefined
  const usable = bases
    .filter((base) => logOf(base) === log && first <= base.startSegment && base.stopSegment <= latest.segment)
    .filter((base) => finishOf(base) <= latest.at)
    .sort((a, b) => finishOf(a) - finishOf(b))
  const [oldest] = usable
  if (!oldest) return undefined
  const quietTimes = marks.at(-1) === latest ? quiet.filter(({ markedAt }) => markedAt === latest.at) : []
  const to = Math.max(latest.at, ...quietTimes.map(({ until }) => until))
  return { from: finishOf(oldest), to, log, bases: usable, lastMark: latest, marks }
}

export const finishOf = (base: Manifest): number => Date.parse(base.finishedAt)

/** Returns the intervals as windows, oldest first: a gap ends a window, and the first backup after it begins the next. */
export function windowsOf(intervals: readonly Interval[]): readonly RestoreWindow[] {
  return intervals.map(({ from, to }) => ({ earliest: new Date(from).toISOString(), latest: new Date(to).toISOString() }))
}

/** Returns the newest interval as a window. */
export const windowOf = (intervals: readonly Interval[]): RestoreWindow | null => windowsOf(intervals).at(-1) ?? null

export interface RestorePlan {
  readonly base: Manifest
  /** First and last segment to replay. */
  readonly first: number
  readonly last: number
  /** Time at which recovery stops, in ms. At most the desired time: nothing was committed between both. */
  readonly target: number
}

/** Chooses the backup and the segments to restore a time with; undefined when the time is in no interval. */
export function planRestore(intervals: readonly Interval[], time: number): RestorePlan | undefined {
  const interval = intervals.findLast(({ from, to }) => from <= time && time <= to)
  const base = interval?.bases.findLast((candidate) => finishOf(candidate) <= time)
  if (!interval || !base) return undefined
  const target = Math.min(time, interval.lastMark.at)
  // Recovery needs a commit after its target (PostgreSQL, "recovery_target_time"), which each mark is.
  const stop = interval.marks.find(({ segment, at }) => segment >= base.stopSegment && at >= target)
  return stop && { base, first: base.startSegment, last: stop.segment, target }
}
