import type { DatabaseSync } from 'node:sqlite'
import type { AuditRecord, ConnectionRecord } from '../port.ts'
import { bytesOfId } from './record-id.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

export interface EventKeeper {
  /** Keep one record each, within a transaction. A record that exists already stays unchanged. */
  readonly connection: (json: string) => void
  readonly audit: (json: string) => void
}

/** Creates the part of the writing thread that keeps connections and audit entries. Their ids must be valid. */
export function createEventKeeper(db: DatabaseSync, tunnels: TunnelNumbers): EventKeeper {
  const addConnection = db.prepare(`
    INSERT OR IGNORE INTO connections (tunnel, id, at, type, ip, method, session, fingerprint, password, reason, ms, edge)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  // An edge may ship records late after a fault: the end of a session before its beginning.
  const opens = db.prepare(`
    INSERT OR IGNORE INTO open_sessions (session, tunnel, id) SELECT ?1, ?2, ?3
    WHERE NOT EXISTS (SELECT 1 FROM connections WHERE session = ?1 AND type = 'disconnect')`)
  const connected = db.prepare('UPDATE tunnels SET connected_at = max(coalesce(connected_at, 0), ?) WHERE number = ?')
  const closes = db.prepare('DELETE FROM open_sessions WHERE session = ?')
  const addAudit = db.prepare(`
    INSERT OR IGNORE INTO audit
      (namespace, id, at, actor_name, actor_kind, via, action, kind, resource, name, changes, ip, request, generation, hostname)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15
    WHERE ?6 <> 'unknown' OR NOT EXISTS (
      SELECT 1 FROM audit WHERE resource = ?9 AND (generation = ?14 OR (?14 IS NULL AND action = 'delete'))
    )`)
  const replaceUnknown = db.prepare(`
    DELETE FROM audit WHERE via = 'unknown' AND resource = ?1 AND (generation = ?2 OR (?2 IS NULL AND ?3 = 'delete' AND action = 'delete'))`)

  function connection(json: string): void {
    const record = JSON.parse(json) as ConnectionRecord
    const { at, type, clientIp, authMethod, sessionId, keyFingerprint, passwordId, reason, durationMs, edge } = record
    const id = idOf(record)
    const tunnel = tunnels.of(record.tunnel)
    const about = [authMethod, sessionId, keyFingerprint, passwordId, reason, durationMs, edge]
    const isNew = addConnection.run(tunnel, id, at, type, clientIp, ...about).changes === 1
    if (isNew && type === 'connect') {
      opens.run(sessionId, tunnel, id)
      connected.run(at, tunnel)
    }
    if (isNew && type === 'disconnect') closes.run(sessionId)
  }

  function audit(json: string): void {
    const record = JSON.parse(json) as AuditRecord
    const { namespace, at, actor, via, action, resource, changes, sourceIp, requestId, generation } = record
    const who = [actor?.name ?? null, actor?.kind ?? null, via]
    const what = [action, resource.kind, resource.id, resource.name, JSON.stringify(changes)]
    if (via !== 'unknown') replaceUnknown.run(resource.id, generation, action)
    addAudit.run(namespace, idOf(record), at, ...who, ...what, sourceIp, requestId, generation, resource.hostname ?? null)
  }

  return { connection, audit }
}

function idOf({ id }: { readonly id: string }): Uint8Array {
  const bytes = bytesOfId(id)
  if (!bytes) throw new TypeError('record id must be a UUIDv7')
  return bytes
}
