import { Buffer } from 'node:buffer'
import { MooringError } from '../shared/errors.ts'
import type { RequestRecord } from './port.ts'

/*
 * Requests that are shipped are lines of text. A tunnel's uid is one, after an `@`: those that follow are its. A request is one line a field: id, at, method, path,
 * status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason (empty: null), protocol. A batch is one piece of memory, which crosses to another thread as a copy
 * of that: for a fraction of what the objects would cost the thread that serves traffic. request-lines.ts writes them.
 */

/** Longest path that is kept; the rest is cut off. */
export const PATH_MAX = 2_048
/** Lines of a request. */
export const FIELDS = 12
/** What a tunnel's line begins with, as no id does. */
export const TUNNEL = 0x40
const TUNNEL_MARK = '@'

/** The records of a batch, which is UTF-8. @throws MooringError `invalid_record` when it is not whole */
export function requestRows(batch: Uint8Array): RequestRecord[] {
  return recordsIn(Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength).toString(), undefined)
}

/** The records of one tunnel, from their lines alone. @throws MooringError `invalid_record` when they are not whole */
export function rowsOfTunnel(lines: string, tunnel: string): RequestRecord[] {
  return recordsIn(lines, tunnel)
}

function recordsIn(text: string, of: string | undefined): RequestRecord[] {
  const lines = text.split('\n')
  const rows: RequestRecord[] = []
  let tunnel = of
  let at = 0
  // After the last line end comes an empty text.
  while (at < lines.length - 1) {
    const line = lines[at] ?? ''
    if (line.startsWith(TUNNEL_MARK)) {
      tunnel = line.slice(1)
      at += 1
      continue
    }
    if (tunnel === undefined || at + FIELDS >= lines.length) throw notWhole()
    rows.push(recordAt(lines, at, tunnel))
    at += FIELDS
  }
  if (lines.at(-1) !== '') throw notWhole()
  return rows
}

/** What is thrown for a batch that does not end where a request does: it never will. */
export const notWhole = (): MooringError => new MooringError('invalid_record', 'a batch of requests is not whole')

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
