import type { AuditRecord, ConnectionRecord } from './port.ts'

/** A row of either database, its id and its tunnel as text. */
export type EventRow = Readonly<Record<string, unknown>>

/** PostgreSQL's driver gives 64-bit integers as text. */
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
    resource: { kind: row.kind as string, id: row.resource as string, name: row.name as string },
    generation: row.generation === null ? null : numberOf(row.generation),
    changes: JSON.parse(row.changes as string) as AuditRecord['changes'],
    sourceIp: row.ip as string | null,
    requestId: row.request as string | null,
  }
}
