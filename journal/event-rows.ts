import type { AuditRecord, ConnectionRecord } from './port.ts'

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
