import { MooringError } from '../../shared/errors.ts'
import type { RequestRecord } from '../port.ts'
import { MINUTE_MS } from '../search.ts'
import { requestRows } from '../request-text.ts'

const NONE = '00000000-0000-0000-0000-000000000000'
const HIGHEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const TIME_DIGITS = 12
const LAST_TIME = 2 ** 48 - 1
const RECORD_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Upper bound of the ids on a page after `before`. An invalid id sorts before all others, so that its page is empty. */
export const startOf = (before: string | undefined): string =>
  before === undefined ? HIGHEST : isRecordId(before) ? before : NONE

/** Returns the lower bound of ids created at or after a time in milliseconds since the epoch. */
export function lowestId(atMs: number): string {
  const hex = Math.min(Math.max(0, Math.ceil(atMs)), LAST_TIME)
    .toString(16)
    .padStart(TIME_DIGITS, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** Returns the creation time of an id in milliseconds since the epoch (RFC 9562, section 5.7). */
export const timeOfId = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** Whether a text is a UUID. A tunnel with another name has no rows. */
export const isUuid = (text: string): boolean => UUID.test(text)

/** Whether a text is a UUIDv7, as the id of every record must be. */
const isRecordId = (text: string): boolean => RECORD_ID.test(text)

/** Rejects a record without a valid id at once: it is a defect of the caller, and could never be kept. */
export function withId<R extends { readonly id: string }>(record: R): R {
  if (isRecordId(record.id)) return record
  throw new MooringError('invalid_record', 'record id must be a UUIDv7')
}

const NEEDS_CARE = /["\\\0]/
const NEEDS_ESCAPE = /["\\]/g
/** JSON escapes of characters that PostgreSQL's text cannot hold: NUL and unpaired surrogates. */
const UNSTORABLE = /\\u(0000|d[89a-f])/i

/** Batch of requests as arguments of `keep_requests`: arrays in PostgreSQL's text format (PostgreSQL manual, "Arrays"). */
export interface RequestColumns {
  /** Array elements of each column, separated by commas. */
  readonly columns: readonly string[]
  readonly rows: number
  /** Number of invalid records, which are left out. */
  readonly refused: number
}

/** Converts a batch in the format of request-text.ts. @throws MooringError `invalid_record` when it is truncated */
export function requestColumns(batch: Uint8Array): RequestColumns {
  const given = requestRows(batch)
  const rows = given.filter(isRecord)
  return { columns: COLUMNS.map((cell) => rows.map(cell).join(',')), rows: rows.length, refused: given.length - rows.length }
}

/** Joins several batches into one array literal for each column. */
export function joinColumns(parts: readonly RequestColumns[]): readonly string[] {
  const full = parts.filter(({ rows }) => rows > 0)
  return COLUMNS.map((_cell, index) => `{${full.map(({ columns }) => columns[index]).join(',')}}`)
}

/** Cells of a row, in the order of the arguments of `keep_requests`. */
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

/** Joins records, each as JSON, into one JSON array that PostgreSQL accepts. */
export function jsonArray(records: readonly string[]): string {
  return `[${records.map(withoutUnstorable).join(',')}]`
}

function withoutUnstorable(json: string): string {
  if (!UNSTORABLE.test(json)) return json
  return JSON.stringify(JSON.parse(json, (_key, value: unknown) => (typeof value === 'string' ? storable(value) : value)))
}

const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\u{fffd}')
