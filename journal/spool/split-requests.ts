import { Buffer } from 'node:buffer'
import { FIELDS, TUNNEL } from '../request-text.ts'

const NEWLINE = 10
const EMPTY: Buffer = Buffer.alloc(0)

/** Part of a batch, the content of one frame. */
export interface BatchPart {
  readonly payload: Buffer
  readonly records: number
}

/**
 * Divides a batch of requests (request-text.ts) into batches of at most `most` requests. A truncated request at the end counts as
 * one.
 */
export function* splitRequests(batch: Buffer, most: number): Generator<BatchPart> {
  let tunnel = EMPTY
  /** Line of the tunnel that precedes the lines of a part, unless they begin with one. */
  let heading = EMPTY
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
    heading = batch[at] === TUNNEL ? EMPTY : tunnel
    start = at
  }
}

function requestEnd(batch: Buffer, from: number): number {
  let at = from
  for (let field = 0; field < FIELDS; field += 1) at = lineEnd(batch, at)
  return at
}

/** Returns the start of the next line. */
function lineEnd(batch: Buffer, from: number): number {
  const end = batch.indexOf(NEWLINE, from)
  return end < 0 ? batch.length : end + 1
}
