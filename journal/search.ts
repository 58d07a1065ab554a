import type { AuditFilter, AuditRecord, ConnectionFilter, ConnectionRecord, RequestFilter, RequestRecord } from './port.ts'

// Searches and rows, the same for the journals in SQLite and in PostgreSQL.

export const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440
/** Approximate number of requests in one range. Other readers get a turn between two ranges. */
export const RANGE_ROWS = 20_000

/** Whether a record matches the filter of a search. Pure. */
export function matchesFilter(record: RequestRecord, filter: RequestFilter): boolean {
  const { from = -Infinity, to = Infinity, pathPrefix = '', statusClass } = filter
  const same = (['method', 'status', 'sourceIp', 'origin', 'reason'] as const).every(
    (field) => filter[field] === undefined || filter[field] === record[field],
  )
  const inTime = record.at >= from && record.at < to
  const inClass = statusClass === undefined || Math.floor(record.status / 100) === statusClass
  return same && inTime && inClass && record.path.startsWith(pathPrefix)
}

/** Conditions of a query, joined with AND, and the values of their parameters. Each condition names its parameter as `$`. */
export interface Conditions<V> {
  /** Adds a condition, unless the value is undefined. */
  and(sql: string, value: V | undefined): Conditions<V>
  readonly where: string
  readonly values: readonly V[]
}

/** Creates empty conditions. `placeholder` returns the database's own name for the parameter at an index, which starts at 0. */
export function createConditions<V>(
  placeholder: (index: number) => string,
  parts: readonly (readonly [sql: string, value: V])[] = [],
): Conditions<V> {
  return {
    and: (sql, value) => createConditions(placeholder, value === undefined ? parts : [...parts, [sql, value]]),
    where: parts.length === 0 ? 'true' : parts.map(([sql], index) => sql.replace('$', () => placeholder(index))).join(' AND '),
    values: parts.map(([, value]) => value),
  }
}

/** Adds conditions on the sums of a minute that holds a match of the filter. */
export function minuteConditions<V>(
  conditions: Conditions<V | number>,
  { from, to, status, statusClass, origin }: RequestFilter,
): Conditions<V | number> {
  const statusDigit = statusClass ?? (status === undefined ? undefined : Math.floor(status / 100))
  const isClass = statusDigit !== undefined && statusDigit >= 1 && statusDigit <= 5
  return conditions
    .and('last_at >= $', from)
    .and('first_at < $', to)
    .and(`s${statusDigit ?? ''} > $`, isClass ? 0 : undefined)
    .and('edge > $', origin === 'edge' ? 0 : undefined)
    .and('requests - edge > $', origin === 'backend' ? 0 : undefined)
}

/** Adds the conditions on connections of one tunnel, all but that on the tunnel. */
export function connectionConditions<V>(
  conditions: Conditions<V | string | number>,
  { from, to, type, clientIp, refused }: ConnectionFilter,
): Conditions<V | string | number> {
  return conditions
    .and('at >= $', from)
    .and('at < $', to)
    .and('type = $', type)
    .and('ip = $', clientIp)
    .and('type <> $', refused ? undefined : 'refused')
}

/** Adds the conditions on audit entries. `table` is the name of their table. */
export function auditConditions<V>(
  conditions: Conditions<V | string | number>,
  { namespace, kind, id, hostname, actor, action, from, to }: AuditFilter,
  table: string,
): Conditions<V | string | number> {
  return conditions
    .and('namespace = $', namespace)
    .and('at >= $', from)
    .and('at < $', to)
    .and('kind = $', kind)
    .and('resource = $', id)
    .and(`resource IN (SELECT resource FROM ${table} WHERE hostname = $)`, hostname)
    .and('actor_name = $', actor)
    .and('action = $', action)
}

/** Part of a tunnel's log in one day's table: half-open, by the times of ids in milliseconds since the epoch. */
export interface Range {
  readonly day: number
  readonly from: number
  readonly to: number
}

/** Number of requests in a minute, which is counted from the epoch. */
export interface MinuteOfLog {
  readonly minute: number
  readonly requests: number
}

/**
 * Divides a search into ranges, newest first. `all` says that minutes that are not listed are empty, so that a range may span
 * them. Pure.
 */
export function rangesOf(minutes: readonly MinuteOfLog[], all: boolean): Range[] {
  const ranges: Range[] = []
  let rows = 0
  for (const { minute, requests } of minutes) {
    const day = Math.floor(minute / DAY_MINUTES)
    const open = ranges.at(-1)
    const joins = open?.day === day && (all || open.from === (minute + 1) * MINUTE_MS) && rows + requests <= RANGE_ROWS
    if (open && joins) {
      ranges[ranges.length - 1] = { ...open, from: minute * MINUTE_MS }
      rows += requests
    } else {
      ranges.push(...slicesOf(minute, requests, day))
      rows = requests
    }
  }
  return ranges
}

/** Divides a busy minute into ranges, newest first. */
function slicesOf(minute: number, requests: number, day: number): Range[] {
  const count = Math.min(Math.max(1, Math.ceil(requests / RANGE_ROWS)), MINUTE_MS)
  const edge = (index: number) => minute * MINUTE_MS + Math.floor((index * MINUTE_MS) / count)
  return Array.from({ length: count }, (_, index) => ({ day, from: edge(count - index - 1), to: edge(count - index) }))
}

/** A row of SQLite or PostgreSQL, with the id of the record and the uid of its tunnel as text. */
export type EventRow = Readonly<Record<string, unknown>>

/** Converts a 64-bit integer, which PostgreSQL's driver returns as text. */
export const numberOf = (value: unknown): number => Number(value)
const numberOrNull = (value: unknown): number | null => (value === null || value === undefined ? null : Number(value))

export function connectionOf(row: EventRow): ConnectionRecord {
  return {
    id: row.id as string,
    tunnel: row.tunnel as string,
    at: numberOf(row.at),
    type: row.type as ConnectionRecord['type'],
    edge: row.edge as string,
    clientIp: row.ip as string,
    authMethod: row.method as ConnectionRecord['authMethod'],
    sessionId: row.session as string,
    keyFingerprint: row.fingerprint as string | null,
    passwordId: row.password as string | null,
    reason: row.reason as string | null,
    durationMs: numberOrNull(row.ms),
  }
}

export function auditOf(row: EventRow): AuditRecord {
  const actor = row.actor_name === null ? null : { name: row.actor_name as string, kind: row.actor_kind as string }
  return {
    id: row.id as string,
    at: numberOf(row.at),
    namespace: row.namespace as string,
    actor,
    via: row.via as AuditRecord['via'],
    action: row.action as AuditRecord['action'],
    resource: resourceOf(row),
    generation: row.generation === null ? null : numberOf(row.generation),
    changes: JSON.parse(row.changes as string) as AuditRecord['changes'],
    sourceIp: row.ip as string | null,
    requestId: row.request as string | null,
  }
}

function resourceOf({ kind, resource, name, known_hostname: hostname }: EventRow): AuditRecord['resource'] {
  const about = { kind: kind as string, id: resource as string, name: name as string }
  return typeof hostname === 'string' ? { ...about, hostname } : about
}

/**
 * Returns the columns that {@link auditOf} reads. The query must name `table` as `audit`. An entry of a tunnel that lacks the
 * hostname gets it from another entry of the same tunnel.
 */
export const auditColumns = (table: string): string =>
  `audit.*, CASE WHEN audit.kind = 'Tunnel' THEN
    coalesce(audit.hostname, (SELECT max(hostname) FROM ${table} AS other WHERE other.resource = audit.resource))
  END AS known_hostname`
