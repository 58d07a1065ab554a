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

/** The records of a batch. @throws TypeError when it is not whole records */
export function requestRows(text: string): RequestRecord[] {
  const rows: RequestRecord[] = []
  eachRequest(text, (record) => rows.push(record))
  return rows
}

/**
 * Tells of each record of a batch, and its text without its tunnel: see {@link rowsOfTunnel}.
 * @throws TypeError when it is not whole records
 */
export function eachRequest(text: string, tell: (record: RequestRecord, ofTunnel: string) => void): void {
  const fields = fieldsOf(text, FIELDS)
  let at = 0
  for (let start = 0; start + FIELDS < fields.length; start += FIELDS) {
    let end = at
    for (let field = start; field < start + FIELDS; field++) end += (fields[field]?.length ?? 0) + 1
    const [id = '', tunnel = ''] = [fields[start], fields[start + 1]]
    tell(recordAt(fields, start + 2, id, tunnel), `${id}\n${text.slice(at + id.length + tunnel.length + 2, end)}`)
    at = end
  }
}

/** A request without its tunnel: see {@link rowsOfTunnel}. */
export function textOfTunnel(record: RequestRecord): string {
  return `${record.id}\n${requestText(record).slice(record.id.length + record.tunnel.length + 2)}`
}

/** The records of one tunnel, from their texts without it, one after the other. @throws TypeError when they are not whole */
export function rowsOfTunnel(text: string, tunnel: string): RequestRecord[] {
  const fields = fieldsOf(text, FIELDS - 1)
  const rows: RequestRecord[] = []
  for (let start = 0; start + FIELDS - 1 < fields.length; start += FIELDS - 1) {
    rows.push(recordAt(fields, start + 1, fields[start] ?? '', tunnel))
  }
  return rows
}

function fieldsOf(text: string, ofRecord: number): readonly string[] {
  const fields = text.split('\n')
  if ((fields.length - 1) % ofRecord !== 0) throw new TypeError('a batch of requests is not whole')
  return fields
}

/** `start`: of the field after its tunnel. */
function recordAt(fields: readonly string[], start: number, id: string, tunnel: string): RequestRecord {
  const text = (offset: number): string => fields[start + offset] ?? ''
  const number = (offset: number): number => Number(fields[start + offset])
  return {
    id,
    tunnel,
    at: number(0),
    method: text(1),
    path: text(2),
    status: number(3),
    durationMs: number(4),
    bytesIn: number(5),
    bytesOut: number(6),
    sourceIp: text(7),
    origin: text(8) === 'edge' ? 'edge' : 'backend',
    reason: text(9) === '' ? null : text(9),
    protocol: text(10) === 'h2' ? 'h2' : 'http/1.1',
  }
}
