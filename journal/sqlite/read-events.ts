import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { AuditedChange, AuditFilter, AuditRecord, ConnectionFilter, ConnectionRecord, Page } from '../port.ts'
import { auditColumns, auditOf as auditOfRow, connectionOf as connectionOfRow, type EventRow } from '../event-rows.ts'
import { createConditions } from './conditions.ts'
import type { Presence } from './messages.ts'
import { bytesOfId, HIGHEST_ID, idOfBytes } from './record-id.ts'

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
    connections({ tunnel, type, clientIp, refused, from, to }, { limit, before }) {
      const { where, values } = createConditions()
        .and('connections.tunnel = (SELECT number FROM tunnels WHERE uid = ?)', tunnel)
        .and('id < ?', startOf(before))
        .and('at >= ?', from)
        .and('at < ?', to)
        .and('type = ?', type)
        .and('ip = ?', clientIp)
        .and('type <> ?', refused ? undefined : 'refused')
      const sql = `SELECT connections.*, uid FROM connections JOIN tunnels ON number = tunnel WHERE ${where} ORDER BY id DESC LIMIT ?`
      return all(sql, [...values, limit]).map(connectionOf)
    },
    audit({ namespace, kind, id, hostname, actor, action, from, to }, { limit, before }) {
      const { where, values } = createConditions()
        .and('namespace = ?', namespace)
        .and('id < ?', startOf(before))
        .and('at >= ?', from)
        .and('at < ?', to)
        .and('kind = ?', kind)
        .and('resource = ?', id)
        .and('resource IN (SELECT resource FROM audit WHERE hostname = ?)', hostname)
        .and('actor_name = ?', actor)
        .and('action = ?', action)
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

/** Upper bound of the ids on a page after `before`. An invalid id sorts before all others, so that its page is empty. */
export const startOf = (before: string | undefined): Uint8Array =>
  before === undefined ? HIGHEST_ID : (bytesOfId(before) ?? new Uint8Array(16))

const connectionOf = (row: EventRow): ConnectionRecord =>
  connectionOfRow({ ...row, id: idOfBytes(row.id as Uint8Array), tunnel: row.uid })
const auditOf = (row: EventRow): AuditRecord => auditOfRow({ ...row, id: idOfBytes(row.id as Uint8Array) })
