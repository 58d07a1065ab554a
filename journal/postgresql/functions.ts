import { ADD_DELIVERY, WEBHOOK_CHANNEL } from './deliveries.ts'
import { AUDIT_DAYS, EVENT_DAYS, REQUEST_DAYS } from '../port.ts'

/** Channel of notifications. The payload is the uid of a followed tunnel and the ids of kept requests, separated by spaces. */
export const CHANNEL = 'journal_requests'
/** Maximum number of ids in a notification. An id takes 37 bytes, and PostgreSQL limits a payload to less than 8,000 bytes. */
const IDS_PER_NOTIFICATION = 200

/**
 * Maximum number of client addresses counted for a minute and for an hour of a tunnel: traffic from a million addresses must not
 * fill the disk.
 */
const CLIENTS_OF_MINUTE = 64
const CLIENTS_OF_HOUR = 256

/**
 * Merges counts by address. All writers lock rows in one order, table by table and key by key, so that two edges cannot deadlock.
 */
const mergeClients = (table: string, most: number): string => `
  ON CONFLICT (tunnel, minute) DO UPDATE SET (ips, requests) = (
    SELECT array_agg(ip ORDER BY n DESC, ip), array_agg(n ORDER BY n DESC, ip) FROM (
      SELECT ip, sum(n)::bigint AS n FROM (
        SELECT * FROM unnest(${table}.ips, ${table}.requests) UNION ALL SELECT * FROM unnest(excluded.ips, excluded.requests)
      ) AS both_of(ip, n) GROUP BY ip ORDER BY n DESC, ip LIMIT ${most}
    ) AS top
  )`

/** Declares the variables of a function that keeps rows from day `today - days` to tomorrow. */
const declare = (days: number): string => `
  DECLARE
    today bigint := floor(extract(epoch FROM now()) / 86400);
    low uuid := lowest_id((today - ${days}) * 86400000);
    high uuid := lowest_id((today + 2) * 86400000);
    refused integer;
    told bigint;`

const define = (signature: string, declaration: string, body: string): string => `
  CREATE OR REPLACE FUNCTION ${signature} RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, journal, pg_temp AS $body$ ${declaration} BEGIN ${body} RETURN refused; END $body$;`

const KEEP_REQUESTS = `
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest(tunnels, ids, times, ats, methods, paths, statuses, durations, ins, outs, ips, edges, reasons, h2s)
      AS g(tunnel, id, minute, at, method, path, status, ms, bytes_in, bytes_out, ip, edge, reason, h2)
  ), fresh AS (
    INSERT INTO requests (tunnel, id, minute, at, method, path, status, ms, bytes_in, bytes_out, ip, edge, reason, h2)
    SELECT * FROM given WHERE id >= low AND id < high ORDER BY tunnel, id ON CONFLICT DO NOTHING
    RETURNING tunnel, id, minute, at, status, ms, bytes_in, bytes_out, ip, edge
  ), summed AS (
    INSERT INTO minutes AS m (tunnel, minute, requests, ms, s1, s2, s3, s4, s5, edge, bytes_in, bytes_out, first_at, last_at)
    SELECT tunnel, minute, count(*), coalesce(sum(ms) FILTER (WHERE NOT edge), 0), count(*) FILTER (WHERE status < 200), count(*) FILTER (WHERE status BETWEEN 200 AND 299),
      count(*) FILTER (WHERE status BETWEEN 300 AND 399), count(*) FILTER (WHERE status BETWEEN 400 AND 499),
      count(*) FILTER (WHERE status > 499), count(*) FILTER (WHERE edge), sum(bytes_in), sum(bytes_out), min(at), max(at)
    FROM fresh GROUP BY tunnel, minute ORDER BY tunnel, minute
    ON CONFLICT (tunnel, minute) DO UPDATE SET requests = m.requests + excluded.requests, ms = m.ms + excluded.ms,
      s1 = m.s1 + excluded.s1, s2 = m.s2 + excluded.s2, s3 = m.s3 + excluded.s3, s4 = m.s4 + excluded.s4, s5 = m.s5 + excluded.s5,
      edge = m.edge + excluded.edge, bytes_in = m.bytes_in + excluded.bytes_in, bytes_out = m.bytes_out + excluded.bytes_out,
      first_at = least(m.first_at, excluded.first_at), last_at = greatest(m.last_at, excluded.last_at)
  ), counted AS (
    SELECT tunnel, minute, ip, count(*) AS n FROM fresh GROUP BY tunnel, minute, ip
  ), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY tunnel, minute ORDER BY n DESC, ip) AS place FROM counted
  ), by_minute AS (
    INSERT INTO client_minutes AS c (tunnel, minute, ips, requests)
    SELECT tunnel, minute, array_agg(ip ORDER BY place), array_agg(n ORDER BY place) FROM ranked
    WHERE place <= ${CLIENTS_OF_MINUTE} GROUP BY tunnel, minute ORDER BY tunnel, minute
    ${mergeClients('c', CLIENTS_OF_MINUTE)}
  ), by_hour AS (
    INSERT INTO client_hours AS c (tunnel, minute, ips, requests)
    SELECT tunnel, hour, array_agg(ip ORDER BY n DESC, ip), array_agg(n ORDER BY n DESC, ip) FROM (
      SELECT tunnel, minute / 60 * 60 AS hour, ip, sum(n)::bigint AS n FROM ranked WHERE place <= ${CLIENTS_OF_HOUR} GROUP BY 1, 2, 3
    ) AS hours GROUP BY tunnel, hour ORDER BY tunnel, hour
    ${mergeClients('c', CLIENTS_OF_HOUR)}
  ), followed_ones AS (
    SELECT tunnel, id, (row_number() OVER (PARTITION BY tunnel ORDER BY id) - 1) / ${IDS_PER_NOTIFICATION} AS part
    FROM fresh WHERE tunnel IN (SELECT f.tunnel FROM followed AS f WHERE f.until > now())
  ), notified AS (
    SELECT pg_notify('${CHANNEL}', tunnel || ' ' || string_agg(id::text, ' ' ORDER BY id)) FROM followed_ones GROUP BY tunnel, part
  )
  SELECT (SELECT count(*) FROM given WHERE NOT (id >= low AND id < high)), (SELECT count(*) FROM notified) INTO refused, told;`

/**
 * Keeps connections. A disconnect with the reason edge_lost is the operator's guess: the disconnect that the edge reports later
 * replaces it, and a guess for an ended session is not kept. Guesses are searched for only when a session ends twice, among all
 * records of its tunnel.
 */
const KEEP_CONNECTIONS = `
  IF EXISTS (
    SELECT FROM json_to_recordset(records) AS g(type text, "sessionId" text) JOIN sessions AS s ON s.session = g."sessionId"
    WHERE g.type = 'disconnect' AND s.ended
  ) THEN
    DELETE FROM connections AS c USING json_to_recordset(records) AS g(tunnel uuid, type text, "sessionId" text, reason text)
    WHERE g.type = 'disconnect' AND g.reason IS DISTINCT FROM 'edge_lost'
      AND c.tunnel = g.tunnel AND c.session = g."sessionId" AND c.type = 'disconnect' AND c.reason = 'edge_lost';
  END IF;
  WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(records) AS g(id uuid, tunnel uuid, at double precision, type text, edge text, "clientIp" text,
      "authMethod" text, "sessionId" text, "keyFingerprint" text, "passwordId" text, reason text, "durationMs" double precision)
  ), fresh AS (
    INSERT INTO connections (tunnel, id, at, type, edge, ip, method, session, fingerprint, password, reason, ms)
    SELECT tunnel, id, at, type, edge, "clientIp", "authMethod", "sessionId", "keyFingerprint", "passwordId", reason, "durationMs"
    FROM given WHERE id >= low AND id < high AND type IS DISTINCT FROM 'refused' AND (
      reason IS DISTINCT FROM 'edge_lost' OR NOT EXISTS (SELECT FROM sessions AS s WHERE s.session = "sessionId" AND s.ended)
    ) ORDER BY tunnel, id ON CONFLICT DO NOTHING RETURNING *
  ), turned_away AS (
    INSERT INTO refusals (tunnel, id, at, type, edge, ip, method, session, fingerprint, password, reason, ms)
    SELECT tunnel, id, at, type, edge, "clientIp", "authMethod", "sessionId", "keyFingerprint", "passwordId", reason, "durationMs"
    FROM given WHERE id >= low AND id < high AND type = 'refused' ORDER BY tunnel, id ON CONFLICT DO NOTHING
  ), came_or_went AS (
    INSERT INTO sessions AS s (session, tunnel, at, opened, ended)
    SELECT session, max(tunnel::text)::uuid, max(at), (array_agg(row_to_json(fresh)) FILTER (WHERE type = 'connect'))[1],
      bool_or(type = 'disconnect')
    FROM fresh GROUP BY session ORDER BY session
    ON CONFLICT (session) DO UPDATE SET at = greatest(s.at, excluded.at), opened = coalesce(s.opened, excluded.opened),
      ended = s.ended OR excluded.ended
  ), came AS (
    INSERT INTO presence AS p (tunnel, connected_at)
    SELECT tunnel, max(at) FROM fresh WHERE type = 'connect' GROUP BY tunnel ORDER BY tunnel
    ON CONFLICT (tunnel) DO UPDATE SET connected_at = greatest(p.connected_at, excluded.connected_at)
  ), entered AS (
    INSERT INTO tunnel_events (session, type, id, record)
    SELECT DISTINCT ON (session, type) session, type, id, row_to_json(fresh) FROM fresh WHERE NOT EXISTS (
      SELECT FROM sessions AS s WHERE s.session = fresh.session AND CASE type WHEN 'connect' THEN s.opened IS NOT NULL ELSE s.ended END
    ) ORDER BY session, type, id ON CONFLICT DO NOTHING RETURNING id
  ), notified AS (
    SELECT pg_notify('${WEBHOOK_CHANNEL}', '') FROM entered LIMIT 1
  )
  SELECT (SELECT count(*) FROM given WHERE NOT (id >= low AND id < high)), (SELECT count(*) FROM notified) INTO refused, told;`

/** SQL condition: an entry records the same write of a resource as `given`. */
const sameWrite = (entry: string): string =>
  `(${entry}.generation = given.generation OR
    (given.generation IS NULL AND given.action = 'delete' AND ${entry}.action = 'delete'))`

/** Keeps audit entries. The lock admits one writer at a time: of two entries for one write, the second must see the first. */
const KEEP_AUDIT = `
  PERFORM pg_advisory_xact_lock(hashtext('journal.keep_audit'));
  WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(records) AS g(id uuid, at double precision, namespace text, actor json, via text, action text,
      resource json, generation bigint, changes json, "sourceIp" text, "requestId" text)
  ), outdone AS (
    DELETE FROM audit AS a USING given
    WHERE given.via <> 'unknown' AND a.via = 'unknown' AND a.resource = given.resource ->> 'id' AND ${sameWrite('a')}
  ), fresh AS (
    INSERT INTO audit (namespace, id, at, actor_name, actor_kind, via, action, kind, resource, name, changes, ip, request, generation, hostname)
    SELECT namespace, id, at, actor ->> 'name', actor ->> 'kind', via, action, resource ->> 'kind', resource ->> 'id',
      resource ->> 'name', changes::text, "sourceIp", "requestId", generation, resource ->> 'hostname'
    FROM given WHERE id >= low AND id < high AND (via <> 'unknown' OR NOT (
      EXISTS (SELECT FROM audit AS a WHERE a.resource = given.resource ->> 'id' AND ${sameWrite('a')}) OR
      EXISTS (SELECT FROM given AS a WHERE a.resource ->> 'id' = given.resource ->> 'id' AND ${sameWrite('a')} AND (a.via <> 'unknown' OR a.id < given.id))
    )) ORDER BY namespace, id ON CONFLICT DO NOTHING
  )
  SELECT count(*) FROM given WHERE NOT (id >= low AND id < high) INTO refused;`

const FOLLOW = `
  DELETE FROM followed AS f WHERE f.follower = who AND NOT f.tunnel = ANY (tunnels);
  INSERT INTO followed (tunnel, follower, until) SELECT DISTINCT t, who, now() + interval '60 seconds' FROM unnest(tunnels) AS t ORDER BY t
  ON CONFLICT ON CONSTRAINT followed_pkey DO UPDATE SET until = excluded.until;
  refused := 0;`

/**
 * Functions through which the roles write; no role may write a table itself. Each function keeps the new records, sums them up in
 * the same transaction, and returns how many records belong to no day that is kept. A record that exists already changes nothing.
 */
export const FUNCTIONS = [
  `CREATE OR REPLACE FUNCTION lowest_id(ms bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
   $$ SELECT (lpad(to_hex(greatest(ms, 0)), 12, '0') || repeat('0', 20))::uuid $$;`,
  define(
    `keep_requests(tunnels uuid[], ids uuid[], times integer[], ats bigint[], methods text[], paths text[], statuses integer[],
     durations double precision[], ins bigint[], outs bigint[], ips text[], edges boolean[], reasons text[], h2s boolean[])`,
    declare(REQUEST_DAYS),
    KEEP_REQUESTS,
  ),
  define('keep_connections(records json)', declare(EVENT_DAYS), KEEP_CONNECTIONS),
  define('keep_audit(records json)', declare(AUDIT_DAYS), KEEP_AUDIT),
  `CREATE OR REPLACE FUNCTION identity() RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER
   SET search_path = pg_catalog, journal, pg_temp AS $$ SELECT id FROM journal.identity $$;`,
  define('add_delivery(delivery json)', 'DECLARE refused integer;', ADD_DELIVERY),
  define('follow(tunnels uuid[], who uuid)', 'DECLARE refused integer;', FOLLOW),
].join('\n')

/** Functions that each role may call. No other role may call them. */
export const CALLABLE = {
  edge: ['keep_requests', 'keep_connections', 'identity'],
  reader: ['keep_audit', 'follow', 'add_delivery'],
} as const
