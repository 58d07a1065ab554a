const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440
/** Requests of one range, about: between two ranges other readers get their turn. */
export const RANGE_ROWS = 20_000

/** A stretch of a tunnel's log in one day's table; half-open, by the times of ids in milliseconds since the epoch. */
export interface Range {
  readonly day: number
  readonly from: number
  readonly to: number
}

/** How many requests a minute since the epoch has. */
export interface MinuteOfLog {
  readonly minute: number
  readonly requests: number
}

/** Pure. `all`: minutes that are not listed hold nothing, so that ranges may go across them. */
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

/** A busy minute in pieces, newest first. */
function slicesOf(minute: number, requests: number, day: number): Range[] {
  const count = Math.min(Math.max(1, Math.ceil(requests / RANGE_ROWS)), MINUTE_MS)
  const edge = (index: number) => minute * MINUTE_MS + Math.floor((index * MINUTE_MS) / count)
  return Array.from({ length: count }, (_, index) => ({ day, from: edge(count - index - 1), to: edge(count - index) }))
}
