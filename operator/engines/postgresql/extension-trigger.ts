import type { ExtensionCalls } from '../engine.ts'
import { quoteText, type Session } from './connection.ts'

/**
 * Event trigger in tenants' databases that answers a tenant's CREATE EXTENSION, which PostgreSQL would reject with "Must be superuser": it
 * names the call of the API that installs the extension. An extension of the instance that the tenant has just dropped, alone or with its
 * schema, is about to be installed again (watchdog): the trigger waits for that, so that `CREATE EXTENSION IF NOT EXISTS` succeeds.
 *
 * The function has the rights of the tenant that calls it, and none of its own. It belongs to the administrator and to the extension plpgsql,
 * so that the tenant can neither drop nor change it, and pg_dump leaves it out, as it does all members of extensions.
 */
const NAME = 'mooring_create_extension'

/** Maximum wait for an extension to be installed again, in seconds: the watchdog looks every 5 s. */
const WAIT_S = 15

/** Names the extensions of a statement in a list. Comments may name others. Quoted names are in the first group, others in the second. */
const NAMED = String.raw`create\s+extension\s+(?:if\s+not\s+exists\s+)?(?:"([^"]+)"|([a-z_][a-z0-9_$]*))`

const bodyOf = (calls: ExtensionCalls): string => String.raw`
DECLARE
  context text;
  statement text;
  named text[];
  available text[];
  missing text[];
  awaited text[];
  patience CONSTANT timestamptz := clock_timestamp() + interval '${WAIT_S} s';
BEGIN
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    RETURN;
  END IF;
  -- The statement of a function or DO block is in the context. Otherwise it is in the query of the client, perhaps with others.
  GET DIAGNOSTICS context = PG_CONTEXT;
  statement := coalesce(substring(context FROM 'SQL statement "(.*?)"\nPL/pgSQL'), current_query());
  statement := regexp_replace(regexp_replace(statement, '--[^\n]*', ' ', 'g'), '/\*.*?\*/', ' ', 'g');
  named := ARRAY(SELECT coalesce(match[1], lower(match[2])) FROM regexp_matches(statement, '${NAMED}', 'gi') AS match);
  available := ARRAY(SELECT name FROM pg_available_extensions() WHERE name = ANY (named));
  -- PostgreSQL's own error would show a path of the server.
  IF cardinality(named) = 1 AND available = '{}' THEN
    RAISE feature_not_supported USING
      MESSAGE = format('extension "%s" is not available on this server', named[1]),
      HINT = 'GET ${calls} lists the extensions that can be installed.';
  END IF;
  named := available;
  missing := ARRAY(SELECT name FROM unnest(named) AS name WHERE name NOT IN (SELECT extname FROM pg_extension));
  -- With an installed one among them, it is not known which one this statement creates. PostgreSQL decides.
  IF missing = '{}' OR missing <> named THEN
    RETURN;
  END IF;
  awaited := ARRAY(
    SELECT unnest(missing) INTERSECT
    SELECT unnest(string_to_array(obj_description(oid, 'pg_event_trigger'), ',')) FROM pg_event_trigger WHERE evtname = '${NAME}');
  -- A transaction that has written may have dropped the extension itself, or hold locks that the installation needs.
  IF awaited <> '{}' AND pg_current_xact_id_if_assigned() IS NULL THEN
    LOOP
      awaited := ARRAY(SELECT unnest(awaited) EXCEPT SELECT extname FROM pg_extension);
      EXIT WHEN awaited = '{}' OR clock_timestamp() > patience;
      PERFORM pg_sleep(0.1);
    END LOOP;
    IF awaited = '{}' THEN
      RETURN;
    END IF;
  END IF;
  IF awaited <> '{}' THEN
    RAISE insufficient_privilege USING
      MESSAGE = format('permission denied to create extension "%s": it was dropped, and is installed again within seconds after that has been committed', awaited[1]),
      HINT = 'Repeat the statement in a new transaction. "Restores" in the documentation shows how to restore a dump in one transaction.';
  END IF;
  RAISE insufficient_privilege USING
    MESSAGE = format('permission denied to create extension "%s": POST ${calls} with the body {"name":"%s"} installs it if the region allows it', missing[1], missing[1]),
    HINT = 'GET ${calls} lists what the region allows. CREATE EXTENSION IF NOT EXISTS of an installed one succeeds.';
END`

const FUNCTION = `pg_catalog.${NAME}()`

const statements = (body: string): readonly string[] => [
  // Settings of its own: the tenant's functions and operators must not stand for those of the catalog.
  `CREATE OR REPLACE FUNCTION ${FUNCTION} RETURNS event_trigger LANGUAGE plpgsql
    SET search_path = pg_catalog SET standard_conforming_strings = on AS ${quoteText(body)}`,
  `CREATE EVENT TRIGGER ${NAME} ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION ${FUNCTION}`,
  `ALTER EXTENSION plpgsql ADD FUNCTION ${FUNCTION}`,
  `ALTER EXTENSION plpgsql ADD EVENT TRIGGER ${NAME}`,
]

/** Puts the trigger into the session's database, or replaces that of another version. */
export async function installTrigger(session: Session, calls: ExtensionCalls): Promise<void> {
  const body = bodyOf(calls)
  const [found] = await session.query<{ body: string }>(
    'SELECT prosrc AS body FROM pg_event_trigger t JOIN pg_proc p ON p.oid = evtfoid WHERE evtname = $1',
    [NAME],
  )
  if (found?.body === body) return
  await session.query((found ? statements(body).slice(0, 1) : statements(body)).join('; '))
}

/** Records in the session's database, which has the trigger, which extensions are installed again when the tenant drops them. */
export async function recordAwaited(session: Session, names: readonly string[]): Promise<void> {
  await session.query(`COMMENT ON EVENT TRIGGER ${NAME} IS ${names.length === 0 ? 'NULL' : quoteText(names.join(','))}`)
}
