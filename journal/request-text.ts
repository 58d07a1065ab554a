import { METHOD_MAX } from '../crds/tunnel-decisions.ts'
import type { RequestRecord } from './port.ts'

/** Longest path that is kept; the rest is cut off. */
export const PATH_MAX = 2_048
const FIELDS = 13
const LINE_END = /[\n\r]/g

/** The text of the last time that was asked for: requests that follow each other mostly share it, and a number of this size is written as slowly as all else of a record. */
let last = { at: 0, text: '0' }
function timeText(at: number): string {
  if (at !== last.at) last = { at, text: String(at) }
  return last.text
}

const oneLine = (text: string): string => (text.includes('\n') ? text.replaceAll(LINE_END, ' ') : text)

/**
 * A request as lines of text, one a field. A batch of them is one string, which crosses to another thread as a copy of memory: a
 * third of what structured clone or JSON would cost the thread that serves traffic.
 */
export function requestText(record: RequestRecord): string {
  const { id, tunnel, at, method, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol } = record
  const path = oneLine(record.path.length > PATH_MAX ? record.path.slice(0, PATH_MAX) : record.path)
  return `${id}\n${tunnel}\n${timeText(at)}\n${oneLine(method.length > METHOD_MAX ? method.slice(0, METHOD_MAX) : method)}\n${path}\n${status}\n${durationMs}\n${bytesIn}\n${bytesOut}\n${sourceIp}\n${origin}\n${reason === null ? '' : oneLine(reason)}\n${protocol}\n`
}

/** The rows of a batch. @throws TypeError when it is not whole records */
export function requestRows(text: string): RequestRecord[] {
  const fields = text.split('\n')
  const count = (fields.length - 1) / FIELDS
  if (!Number.isInteger(count)) throw new TypeError('a batch of requests is not whole')
  const rows: RequestRecord[] = []
  for (let start = 0; start < count * FIELDS; start += FIELDS) rows.push(rowAt(fields, start))
  return rows
}

function rowAt(fields: readonly string[], start: number): RequestRecord {
  const text = (offset: number): string => fields[start + offset] ?? ''
  const number = (offset: number): number => Number(fields[start + offset])
  return {
    id: text(0),
    tunnel: text(1),
    at: number(2),
    method: text(3),
    path: text(4),
    status: number(5),
    durationMs: number(6),
    bytesIn: number(7),
    bytesOut: number(8),
    sourceIp: text(9),
    origin: text(10) === 'edge' ? 'edge' : 'backend',
    reason: text(11) === '' ? null : text(11),
    protocol: text(12) === 'h2' ? 'h2' : 'http/1.1',
  }
}
