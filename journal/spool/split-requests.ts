import { Buffer } from 'node:buffer'
import { FIELDS, TUNNEL } from '../request-text.ts'

const NEWLINE = 10
const NOTHING: Buffer = Buffer.alloc(0)

/** What goes into a frame. */
export interface Piece {
  readonly payload: Buffer
  readonly records: number
}

/** A batch of requests (request-text.ts) as batches of at most `most` of them each. What is not whole at its end is one. */
export function* splitRequests(batch: Buffer, most: number): Generator<Piece> {
  let tunnel = NOTHING
  /** Put before the lines of a piece, unless they begin with a tunnel's. */
  let heading = NOTHING
  let [start, at] = [0, 0]
  while (at < batch.length) {
    let records = 0
    while (at < batch.length && records < most) {
      const from = at
      if (batch[from] === TUNNEL) {
        at = lineEnd(batch, from)
        tunnel = batch.subarray(from, at)
      } else {
        at = requestEnd(batch, from)
        records += 1
      }
    }
    const lines = batch.subarray(start, at)
    if (records > 0) yield { payload: heading.length > 0 ? Buffer.concat([heading, lines]) : lines, records }
    heading = batch[at] === TUNNEL ? NOTHING : tunnel
    start = at
  }
}

function requestEnd(batch: Buffer, from: number): number {
  let at = from
  for (let field = 0; field < FIELDS; field += 1) at = lineEnd(batch, at)
  return at
}

/** Where the next line begins. */
function lineEnd(batch: Buffer, from: number): number {
  const end = batch.indexOf(NEWLINE, from)
  return end < 0 ? batch.length : end + 1
}
