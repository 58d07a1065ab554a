import { Buffer } from 'node:buffer'
import { FIELDS, TUNNEL } from '../request-text.ts'

const NEWLINE = 10

interface Piece {
  readonly payload: Buffer
  readonly records: number
}

/** A batch of requests (request-text.ts) as batches of at most `most` of them each. What is not whole at its end is one. */
export function splitRequests(batch: Buffer, most: number): readonly Piece[] {
  const pieces: Piece[] = []
  /** The line of the tunnel that the piece begins with, should its own lines not. */
  let heading: Buffer = Buffer.alloc(0)
  let tunnel = heading
  let [start, records, at] = [0, 0, 0]

  function cut(): void {
    const lines = batch.subarray(start, at)
    if (records > 0) pieces.push({ payload: Buffer.concat([heading, lines]), records })
    heading = batch[at] === TUNNEL ? Buffer.alloc(0) : tunnel
    start = at
    records = 0
  }

  while (at < batch.length) {
    if (batch[at] === TUNNEL) {
      const end = lineEnd(batch, at)
      tunnel = batch.subarray(at, end)
      at = end
      continue
    }
    for (let field = 0; field < FIELDS; field += 1) at = lineEnd(batch, at)
    records += 1
    if (records === most) cut()
  }
  cut()
  return pieces
}

/** Where the next line begins. */
function lineEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(NEWLINE, from)
  return end < 0 ? bytes.length : end + 1
}
