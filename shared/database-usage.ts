import { type UsagePeriod, USAGE_PERIODS_MAX } from '../crds/parts/usage-period.ts'

export const HOUR_MS = 3_600_000

/** Half-open time range in milliseconds since the epoch. */
interface Span {
  readonly from: number
  readonly to: number
}

/** Use of one billable item within one clock hour, at a constant rate. */
export interface HourOfUse extends Span {
  readonly item: string
  readonly unit: 'hour' | 'GiB-hour'
  /** Quantity in millionths of the unit, rounded. */
  readonly millionths: number
}

/**
 * Returns the use within a span, by clock hour, plan and item, oldest first. `endedAt`: time in milliseconds at which the use ends, for a database that is
 * being deleted. Pure: the same periods yield the same hours at any time, so that hours can be recorded late, and repeatedly.
 */
export function usageOf(periods: readonly UsagePeriod[], span: Span, endedAt = Infinity): readonly HourOfUse[] {
  const spans = periods.map((period, index): Span & { readonly period: UsagePeriod } => ({
    period,
    from: Math.max(span.from, Date.parse(period.from)),
    to: Math.min(span.to, endedAt, Date.parse(periods[index + 1]?.from ?? '') || Infinity),
  }))
  return spans.flatMap(hoursOf)
}

/** Splits a period at the clock hours. */
function hoursOf({ period, from, to }: Span & { readonly period: UsagePeriod }): readonly HourOfUse[] {
  const hours: HourOfUse[] = []
  for (let start = from; start < to;) {
    const end = Math.min(to, (Math.floor(start / HOUR_MS) + 1) * HOUR_MS)
    const use = (times: number): number => Math.round((times * (end - start) * 1_000_000) / HOUR_MS)
    hours.push({ from: start, to: end, item: period.plan, unit: 'hour', millionths: use(1) })
    for (const [item, gibibytes] of storedIn(period)) {
      if (item !== undefined) hours.push({ from: start, to: end, item, unit: 'GiB-hour', millionths: use(gibibytes) })
    }
    start = end
  }
  return hours
}

/** Billable items of a period that are counted in GiB, with their sizes. */
const storedIn = ({ storageItem, storageGiB, backupItem, backupMiB = 0 }: UsagePeriod) =>
  [
    [storageItem, storageGiB],
    [backupItem, backupMiB / 1_024],
  ] as const

/** Plan, storage and size of backups that are in force, without their begin. */
export type InForce = Omit<UsagePeriod, 'from'>

const hasSamePlan = (a: InForce, b: InForce): boolean =>
  a.plan === b.plan && a.storageGiB === b.storageGiB && a.storageItem === b.storageItem && a.backupItem === b.backupItem

/** Whether periods `after` a report have nothing new but the size of backups. Pure. */
export function isBackupGrowth(before: readonly UsagePeriod[], after: readonly UsagePeriod[]): boolean {
  const [last, next] = [before.at(-1), after.at(-1)]
  return last !== undefined && next !== undefined && hasSamePlan(last, next)
}

/**
 * Returns the periods after a report of what is in force since `from`. The same plan, storage and backups change nothing. Backups grow all the time:
 * their first size that is reported within a clock hour counts for that whole hour, so that a size begins at most one period an hour. A period
 * begins after the one before it, also when the clock was set back. Pure.
 */
export function withPeriod(periods: readonly UsagePeriod[], now: InForce, from: Date): readonly UsagePeriod[] {
  const last = periods.at(-1)
  if (!last) return [{ from: from.toISOString(), ...now }]
  if (!hasSamePlan(last, now)) {
    const start = Math.max(from.getTime(), Date.parse(last.from) + 1)
    return [...periods, { from: new Date(start).toISOString(), ...now }]
  }
  const hour = Math.floor(from.getTime() / HOUR_MS) * HOUR_MS
  if (last.backupMiB === now.backupMiB || Date.parse(last.from) >= hour) return periods
  return [...periods, { from: new Date(hour).toISOString(), ...now }]
}

/**
 * Drops the oldest periods above the maximum number. Undefined when the journal lacks the use of one of them.
 * `recordedUntil`: end of the last recorded hour, in milliseconds since the epoch. Pure.
 */
export function withinMaximum(periods: readonly UsagePeriod[], recordedUntil: number): readonly UsagePeriod[] | undefined {
  const kept = periods.slice(-USAGE_PERIODS_MAX)
  const isRecorded = kept.length === periods.length || Date.parse(kept[0]?.from ?? '') <= recordedUntil
  return isRecorded ? kept : undefined
}

/** Returns a quantity as a decimal string without trailing zeros, such as `0.5`. */
export function decimalOf(millionths: number): string {
  const whole = Math.floor(millionths / 1_000_000)
  const fraction = String(millionths % 1_000_000)
    .padStart(6, '0')
    .replace(/0+$/, '')
  return fraction === '' ? String(whole) : `${whole}.${fraction}`
}
