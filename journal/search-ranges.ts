const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440
/** Approximate number of requests in one range. Other readers get a turn between two ranges. */
export const RANGE_ROWS = 20_000

/** Part of a tunnel's log in one day's table: half-open, by the times of ids in milliseconds since the epoch. */
export interface Range {
  readonly day: number
  readonly from: number
  readonly to: number
}

/** Number of requests in a minute, which is counted from the epoch. */
export interface MinuteOfLog {
  readonly minute: number
  readonly requests: number
}

/**
 * Divides a search into ranges, newest first. `all` says that minutes that are not listed are empty, so that a range may span
 * them. Pure.
 */
export function rangesOf(minutes: readonly MinuteOfLog[], all: boolean): Range[] {
  const ranges: Range[] = []
  let rows = 0
  for (const { minute, requests } of minutes) {
    const day = Math.floor(minute / DAY_MINUTES)
    const open = ranges.at(-1)
    const joins = open?.day === day && (all || open.from === (minute + 1) * MINUTE_MS) && rows + requests <= RANGE_ROWS
    if (open && joins) {
      ranges[ranges.length - 1] = { ...open, from: minute * MINUTE_MS }
      rows += requests
    } else {
      ranges.push(...slicesOf(minute, requests, day))
      rows = requests
    }
  }
  return ranges
}

/** Divides a busy minute into ranges, newest first. */
function slicesOf(minute: number, requests: number, day: number): Range[] {
  const count = Math.min(Math.max(1, Math.ceil(requests / RANGE_ROWS)), MINUTE_MS)
  const edge = (index: number) => minute * MINUTE_MS + Math.floor((index * MINUTE_MS) / count)
  return Array.from({ length: count }, (_, index) => ({ day, from: edge(count - index - 1), to: edge(count - index) }))
}
