import type { JournalReader } from '../port.ts'
import { createConditions } from './conditions.ts'
import { isUuid, startOf } from './ids.ts'
import type { Ask } from './pool.ts'
import { auditColumns, auditOf, connectionOf } from '../event-rows.ts'

export type EventReader = Pick<JournalReader, 'connections' | 'auditEntries' | 'audited' | 'openSessions' | 'presence'>

/** Reads connections and audit entries, newest first, and the open sessions. */
export function createEventReader(ask: Ask): EventReader {
  return {
    async connections({ tunnel, type, clientIp, refused, from, to }, { limit, before }) {
      if (!isUuid(tunnel)) return []
      const { where, values } = createConditions()
        .and('tunnel = $', tunnel)
        .and('id < $', startOf(before))
        .and('at >= $', from)
        .and('at < $', to)
        .and('type = $', type)
        .and('ip = $', clientIp)
        .and('type <> $', refused ? undefined : 'refused')
      const page = (table: string) => `SELECT * FROM journal.${table} WHERE ${where} ORDER BY id DESC LIMIT ${limit}`
      const both = `(${page('connections')}) UNION ALL (${page('refusals')}) ORDER BY id DESC LIMIT ${limit}`
      // Layout 2 kept refused logins among the connections.
      const rows = await ask(refused && type === undefined ? both : page('connections'), values)
      return rows.map(connectionOf)
    },
    async auditEntries({ namespace, kind, id, hostname, actor, action, from, to }, { limit, before }) {
      const { where, values } = createConditions()
        .and('namespace = $', namespace)
        .and('id < $', startOf(before))
        .and('at >= $', from)
        .and('at < $', to)
        .and('kind = $', kind)
        .and('resource = $', id)
        .and('resource IN (SELECT resource FROM journal.audit WHERE hostname = $)', hostname)
        .and('actor_name = $', actor)
        .and('action = $', action)
      const rows = await ask(
        `SELECT ${auditColumns('journal.audit')} FROM journal.audit WHERE ${where} ORDER BY id DESC LIMIT ${limit}`,
        values,
      )
      return rows.map(auditOf)
    },
    async audited(changes) {
      const rows = await ask(
        `SELECT place FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS asked(resource, generation, place)
         WHERE CASE WHEN generation IS NULL
           THEN EXISTS (SELECT FROM journal.audit AS a WHERE a.resource = asked.resource AND a.generation IS NULL AND a.action = 'delete')
           ELSE EXISTS (SELECT FROM journal.audit AS a WHERE a.resource = asked.resource AND a.generation = asked.generation)
         END`,
        [changes.map(({ resource }) => resource), changes.map(({ generation }) => generation)],
      )
      const places = new Set(rows.map(({ place }) => Number(place) - 1))
      return changes.filter((_change, place) => places.has(place))
    },
    async openSessions() {
      const rows = await ask(`
        SELECT o.* FROM journal.sessions, json_to_record(opened) AS o(id uuid, tunnel uuid, at bigint, type text, edge text, ip text,
          method text, session text, fingerprint text, password text, reason text, ms double precision)
        WHERE NOT ended AND opened IS NOT NULL ORDER BY o.id`)
      return rows.map(connectionOf)
    },
    async presence(tunnels) {
      const rows = await ask(
        `SELECT tunnel, connected_at, (
           SELECT count(*) FROM journal.sessions AS s WHERE s.tunnel = p.tunnel AND NOT ended AND opened IS NOT NULL
         ) AS sessions FROM journal.presence AS p WHERE tunnel = ANY ($1::uuid[])`,
        [tunnels.filter(isUuid)],
      )
      return new Map(
        rows.map((row) => [row.tunnel as string, { sessions: Number(row.sessions), lastConnectedAt: Number(row.connected_at) }]),
      )
    },
  }
}
