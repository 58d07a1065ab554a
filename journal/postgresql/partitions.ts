import type { Cut } from './tables.ts'

const DAY_MS = 86_400_000
const DAY_MINUTES = 1_440
/** Days ahead for which there are pieces: so long may nobody look after the journal. */
const AHEAD_DAYS = 7

/** One piece of a partitioned table: from its first day to before its last. */
export interface Piece {
  readonly name: string
  readonly table: string
  /** As SQL literals. */
  readonly from: string
  readonly to: string
}

/** The pieces that a table must have on day `today`. Pure. */
export function piecesWanted(cut: Cut, today: number): readonly Piece[] {
  const pieces: Piece[] = []
  const start = (day: number) => Math.floor(day / cut.days) * cut.days
  for (let day = start(today - cut.lateDays); day <= today + AHEAD_DAYS; day += cut.days) pieces.push(pieceAt(cut, day))
  return pieces
}

/** Of the pieces there are, those whose last day is past the retention. Pure. */
export function piecesOver(cut: Cut, names: readonly string[], today: number): readonly string[] {
  return names.filter((name) => {
    const day = Number(name.slice(cut.table.length + 1))
    return name.startsWith(`${cut.table}_`) && Number.isInteger(day) && day + cut.days <= today - cut.keepDays
  })
}

function pieceAt(cut: Cut, day: number): Piece {
  const bound = cut.by === 'id' ? idBound : (at: number) => String(at * DAY_MINUTES)
  return { name: `${cut.table}_${day}`, table: cut.table, from: bound(day), to: bound(day + cut.days) }
}

const idBound = (day: number): string => `lowest_id(${day * DAY_MS})`
