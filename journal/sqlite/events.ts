import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { AuditRecord, ConnectionRecord, AuditedChange, AuditFilter, ConnectionFilter, Page } from '../port.ts'
import type { DeliveryKeeper } from './deliveries.ts'
import { bytesOfId, idOfBytes, startOf, type TunnelNumbers } from './ids.ts'
import {
  auditColumns,
  auditConditions,
  auditOf as auditOfRow,
  connectionConditions,
  connectionOf as connectionOfRow,
  type EventRow,
  createConditions,
} from '../search.ts'
import type { Presence } from './messages.ts'

export interface EventKeeper {
  /** Keep one record each, within a transaction. A record that exists already stays unchanged. */
  readonly connection: (json: string) => void
  readonly audit: (json: string) => void
}

/**
 * Creates the part of the writing thread that keeps connections and audit entries. Their ids must be valid. `enter` receives new connects and
 * disconnects, for webhooks.
 */
export function createEventKeeper(db: DatabaseSync, tunnels: TunnelNumbers, enter: DeliveryKeeper['event']): EventKeeper {
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
    if (isNew && type !== 'refused') enter(record, json)
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

export interface EventReader {
  connections(filter: ConnectionFilter, page: Page): readonly ConnectionRecord[]
  audit(filter: AuditFilter, page: Page): readonly AuditRecord[]
  audited(changes: readonly AuditedChange[]): readonly AuditedChange[]
  openSessions(): readonly ConnectionRecord[]
  presence(tunnels: readonly string[]): ReadonlyMap<string, Presence>
}

/** Creates the part of the reading thread that reads connections and audit entries, newest first. */
export function createEventReader(db: DatabaseSync): EventReader {
  const all = (sql: string, values: readonly SQLInputValue[]): readonly EventRow[] => db.prepare(sql).all(...values)

  const present = db.prepare(`
    SELECT connected_at AS lastConnectedAt, (SELECT count(*) FROM open_sessions WHERE tunnel = number) AS sessions
    FROM tunnels WHERE uid = ? AND connected_at IS NOT NULL`)
  const findGeneration = db.prepare('SELECT 1 FROM audit WHERE resource = ? AND generation = ? LIMIT 1')
  const findDeletion = db.prepare("SELECT 1 FROM audit WHERE resource = ? AND generation IS NULL AND action = 'delete' LIMIT 1")

  return {
    connections(filter, { limit, before }) {
      const ofTunnel = conditions()
        .and('connections.tunnel = (SELECT number FROM tunnels WHERE uid = $)', filter.tunnel)
        .and('id < $', startOf(before))
      const { where, values } = connectionConditions(ofTunnel, filter)
      const sql = `SELECT connections.*, uid FROM connections JOIN tunnels ON number = tunnel WHERE ${where} ORDER BY id DESC LIMIT ?`
      return all(sql, [...values, limit]).map(connectionOf)
    },
    audit(filter, { limit, before }) {
      const { where, values } = auditConditions(conditions().and('id < $', startOf(before)), filter, 'audit')
      return all(`SELECT ${auditColumns('audit')} FROM audit WHERE ${where} ORDER BY id DESC LIMIT ?`, [...values, limit]).map(
        auditOf,
      )
    },
    audited: (changes) =>
      changes.filter(({ resource, generation }) =>
        generation === null ? findDeletion.get(resource) !== undefined : findGeneration.get(resource, generation) !== undefined,
      ),
    openSessions: () =>
      all(
        `SELECT connections.*, uid FROM open_sessions JOIN tunnels ON number = open_sessions.tunnel
         JOIN connections ON connections.tunnel = open_sessions.tunnel AND connections.id = open_sessions.id ORDER BY connections.id`,
        [],
      ).map(connectionOf),
    presence: (tunnels) =>
      new Map(
        tunnels.flatMap((uid) => {
          const row = present.get(uid) as Presence | undefined
          return row ? [[uid, { ...row }] as const] : []
        }),
      ),
  }
}

const connectionOf = (row: EventRow): ConnectionRecord =>
  connectionOfRow({ ...row, id: idOfBytes(row.id as Uint8Array), tunnel: row.uid })
const auditOf = (row: EventRow): AuditRecord => auditOfRow({ ...row, id: idOfBytes(row.id as Uint8Array) })

/** Creates empty conditions of a query of the file. */
export const conditions = () => createConditions<SQLInputValue>(() => '?')
