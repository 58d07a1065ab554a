import { Buffer } from 'node:buffer'
import { MooringError } from '../shared/errors.ts'
import type { RequestRecord } from './port.ts'

/*
 * Format of a batch of requests: lines of text. A line of `@` and a tunnel's uid begins the requests of this tunnel. A request
 * has one line for each field: id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason (empty:
 * null), protocol. A batch is one block of memory, which is copied to another thread at a fraction of the cost of objects.
 * request-lines.ts writes batches.
 */

/** Maximum length of a path in characters; the rest is cut off. */
export const PATH_MAX = 2_048
/** Number of lines of a request. */
export const FIELDS = 12
/** First byte of a tunnel's line; no id begins with it. */
export const TUNNEL = 0x40
const TUNNEL_MARK = '@'

/** Parses a batch. @throws MooringError `invalid_record` when it is truncated */
export function requestRows(batch: Uint8Array): RequestRecord[] {
  return recordsIn(Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength).toString(), undefined)
}

/** Parses the lines of requests of one tunnel. @throws MooringError `invalid_record` when they are truncated */
export function rowsOfTunnel(lines: string, tunnel: string): RequestRecord[] {
  return recordsIn(lines, tunnel)
}

function recordsIn(text: string, of: string | undefined): RequestRecord[] {
  const lines = text.split('\n')
  const rows: RequestRecord[] = []
  let tunnel = of
  let at = 0
  // `split` returns an empty text after the last line end.
  while (at < lines.length - 1) {
    const line = lines[at] ?? ''
    if (line.startsWith(TUNNEL_MARK)) {
      tunnel = line.slice(1)
      at += 1
      continue
    }
    if (tunnel === undefined || at + FIELDS >= lines.length) throw truncatedBatch()
    rows.push(recordAt(lines, at, tunnel))
    at += FIELDS
  }
  if (lines.at(-1) !== '') throw truncatedBatch()
  return rows
}

/** Creates the error for a batch that does not end where a request ends. No retry can succeed. */
export const truncatedBatch = (): MooringError => new MooringError('invalid_record', 'batch of requests is truncated')

function recordAt(lines: readonly string[], start: number, tunnel: string): RequestRecord {
  const text = (offset: number): string => lines[start + offset] ?? ''
  const number = (offset: number): number => Number(lines[start + offset])
  return {
    id: text(0),
    tunnel,
    at: number(1),
    method: text(2),
    path: text(3),
    status: number(4),
    durationMs: number(5),
    bytesIn: number(6),
    bytesOut: number(7),
    sourceIp: text(8),
    origin: text(9) === 'edge' ? 'edge' : 'backend',
    reason: text(10) === '' ? null : text(10),
    protocol: text(11) === 'h2' ? 'h2' : 'http/1.1',
  }
}
