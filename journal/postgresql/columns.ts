import type { RequestRecord } from '../port.ts'
import { requestRows } from '../request-text.ts'
import { isRecordId, isUuid, timeOfId } from './ids.ts'

const MINUTE_MS = 60_000
const NEEDS_CARE = /["\\\0]/
const NEEDS_ESCAPE = /["\\]/g
/** Escapes in JSON of what PostgreSQL's text cannot hold: NUL, and halves of a character. */
const UNTEXTLIKE = /\\u(0000|d[89a-f])/i

/** A batch of requests as arguments of `keep_requests`: arrays in PostgreSQL's text format ("Arrays", 8.15.6). */
export interface RequestColumns {
  /** Elements with commas between, of each column. */
  readonly columns: readonly string[]
  readonly rows: number
  /** Those that were no records and are not among them. */
  readonly refused: number
}

/** `batch`: as request-text.ts has it. @throws MooringError `invalid_record` when it is not whole */
export function requestColumns(batch: Uint8Array): RequestColumns {
  const given = requestRows(batch)
  const rows = given.filter(isRecord)
  return { columns: COLUMNS.map((cell) => rows.map(cell).join(',')), rows: rows.length, refused: given.length - rows.length }
}

/** Array literals of several batches, as one. */
export function joinColumns(parts: readonly RequestColumns[]): readonly string[] {
  const full = parts.filter(({ rows }) => rows > 0)
  return COLUMNS.map((_cell, index) => `{${full.map(({ columns }) => columns[index]).join(',')}}`)
}

/** In the order of the arguments of `keep_requests`. */
const COLUMNS: readonly ((row: RequestRecord) => string | number | boolean)[] = [
  ({ tunnel }) => tunnel,
  ({ id }) => id,
  ({ id }) => Math.floor(timeOfId(id) / MINUTE_MS),
  ({ at }) => Math.trunc(at),
  ({ method }) => quote(method),
  ({ path }) => quote(path),
  ({ status }) => status,
  ({ durationMs }) => durationMs,
  ({ bytesIn }) => Math.trunc(bytesIn),
  ({ bytesOut }) => Math.trunc(bytesOut),
  ({ sourceIp }) => quote(sourceIp),
  ({ origin }) => origin === 'edge',
  ({ reason }) => (reason === null ? 'NULL' : quote(reason)),
  ({ protocol }) => protocol === 'h2',
]

function isRecord({ id, tunnel, at, status, durationMs, bytesIn, bytesOut }: RequestRecord): boolean {
  return (
    isUuid(tunnel) &&
    isRecordId(id) &&
    isWhole(at) &&
    isWhole(bytesIn) &&
    isWhole(bytesOut) &&
    isStatus(status) &&
    Number.isFinite(durationMs)
  )
}

const isWhole = (number: number): boolean => Number.isSafeInteger(Math.trunc(number))
const isStatus = (status: number): boolean => Number.isInteger(status) && status >= 0 && status < 1_000

function quote(text: string): string {
  if (!NEEDS_CARE.test(text)) return `"${text}"`
  return `"${text.replaceAll('\0', '\u{fffd}').replace(NEEDS_ESCAPE, '\\$&')}"`
}

/** Records, each as JSON, as one array that PostgreSQL takes. */
export function jsonArray(records: readonly string[]): string {
  return `[${records.map(textlike).join(',')}]`
}

function textlike(json: string): string {
  if (!UNTEXTLIKE.test(json)) return json
  return JSON.stringify(JSON.parse(json, (_key, value: unknown) => (typeof value === 'string' ? mended(value) : value)))
}

const mended = (text: string): string => text.toWellFormed().replaceAll('\0', '\u{fffd}')
