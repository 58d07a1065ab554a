import {
  auditConditions,
  connectionConditions,
  auditColumns,
  auditOf,
  type Conditions,
  connectionOf,
  createConditions,
  type EventRow,
  MINUTE_MS,
  minuteConditions,
  type MinuteOfLog,
  numberOf,
  type Range,
  rangesOf,
} from '../search.ts'
import type { Page, RequestFilter, RequestRecord, JournalReader } from '../port.ts'
import { isUuid, lowestId, startOf, timeOfId } from './record-format.ts'
import type { Ask } from './pool.ts'

const conditions = () => createConditions<unknown>((index) => `$${index + 1}`)

/** Number of minutes read in one statement. */
const CHUNK = 256

/** Searches a tunnel's request log, newest first. The sums of each minute show whether it can hold a match. */
export function createRequestReader(ask: Ask): (filter: RequestFilter, page: Page) => Promise<readonly RequestRecord[]> {
  async function* ranges(filter: RequestFilter, newestMs: number): AsyncGenerator<Range> {
    const narrow = minuteConditions(conditions(), filter)
    let next = Math.floor(newestMs / MINUTE_MS)
    for (;;) {
      const { where, values } = narrow.and('tunnel = $', filter.tunnel).and('minute <= $', next)
      const sql = `SELECT minute, requests FROM journal.minutes WHERE ${where} ORDER BY minute DESC LIMIT ${CHUNK}`
      const rows = await ask(sql, values)
      const minutes = rows.map((row): MinuteOfLog => ({ minute: Number(row.minute), requests: Number(row.requests) }))
      yield* rangesOf(minutes, narrow.values.length === 0)
      const last = minutes.at(-1)
      if (!last || minutes.length < CHUNK) return
      next = last.minute - 1
    }
  }

  return async function requests(filter, page) {
    if (!isUuid(filter.tunnel)) return []
    const before = startOf(page.before)
    const found: RequestRecord[] = []
    for await (const { from, to } of ranges(filter, Math.min(timeOfId(before), NEWEST_MS))) {
      const { where, values } = matching(filter, before).and('id >= $', lowestId(from)).and('id < $', lowestId(to))
      const sql = `SELECT * FROM journal.requests WHERE ${where} ORDER BY id DESC LIMIT ${page.limit - found.length}`
      found.push(...(await ask(sql, values)).map(requestOf))
      if (found.length >= page.limit) break
    }
    return found
  }
}

/** Latest time that the column `minute` can hold, in milliseconds since the epoch. */
const NEWEST_MS = (2 ** 31 - 1) * MINUTE_MS

function matching(filter: RequestFilter, before: string): Conditions<unknown> {
  const { tunnel, from, to, method, status, statusClass, sourceIp, pathPrefix, origin, reason } = filter
  return conditions()
    .and('tunnel = $', tunnel)
    .and('id < $', before)
    .and('at >= $', from)
    .and('at < $', to)
    .and('method = $', method)
    .and('status = $', status)
    .and('status / 100 = $', statusClass)
    .and('ip = $', sourceIp)
    .and('starts_with(path, $)', pathPrefix === '' ? undefined : pathPrefix)
    .and('edge = $', origin && origin === 'edge')
    .and('reason = $', reason)
}

/** Converts a row of `journal.requests`. */
export function requestOf(row: EventRow): RequestRecord {
  return {
    id: row.id as string,
    tunnel: row.tunnel as string,
    at: numberOf(row.at),
    method: row.method as string,
    path: row.path as string,
    status: row.status as number,
    durationMs: row.ms as number,
    bytesIn: numberOf(row.bytes_in),
    bytesOut: numberOf(row.bytes_out),
    sourceIp: row.ip as string,
    origin: row.edge === true ? 'edge' : 'backend',
    reason: row.reason as string | null,
    protocol: row.h2 === true ? 'h2' : 'http/1.1',
  }
}

export type EventReader = Pick<JournalReader, 'connections' | 'auditEntries' | 'audited' | 'openSessions' | 'presence'>

/** Reads connections and audit entries, newest first, and the open sessions. */
export function createEventReader(ask: Ask): EventReader {
  return {
    async connections(filter, { limit, before }) {
      if (!isUuid(filter.tunnel)) return []
      const ofTunnel = conditions().and('tunnel = $', filter.tunnel).and('id < $', startOf(before))
      const { where, values } = connectionConditions(ofTunnel, filter)
      const page = (table: string) => `SELECT * FROM journal.${table} WHERE ${where} ORDER BY id DESC LIMIT ${limit}`
      const both = `(${page('connections')}) UNION ALL (${page('refusals')}) ORDER BY id DESC LIMIT ${limit}`
      // Layout 2 kept refused logins among the connections.
      const rows = await ask(filter.refused && filter.type === undefined ? both : page('connections'), values)
      return rows.map(connectionOf)
    },
    async auditEntries(filter, { limit, before }) {
      const { where, values } = auditConditions(conditions().and('id < $', startOf(before)), filter, 'journal.audit')
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
