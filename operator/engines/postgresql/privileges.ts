import { type Connection, type Session, quoteName } from './connection.ts'
import { installTrigger } from './extension-trigger.ts'
import { assertNoneTrusted } from './extensions.ts'
import type { ExtensionCalls, Origin } from '../engine.ts'
import { replaceRole } from './role-traces.ts'

/**
 * Revokes the default privileges of PUBLIC in the databases of a new PostgreSQL cluster (docs/isolation.md). Tenants' databases have none.
 * In 14 every role may create objects in schema `public`, and objects in template1 are copied into each database that names no template.
 * @throws MooringError `server_unsafe`
 */
export async function harden(connection: Connection, { calls }: { readonly calls: ExtensionCalls }): Promise<void> {
  await assertNoneTrusted(connection)
  await connection.query('REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC')
  for (const database of ['postgres', 'template1']) {
    await connection.inside(database, (session) => session.query(`REVOKE ALL ON SCHEMA public FROM PUBLIC; ${REVOKE_UNBOUNDED}`))
  }
  // Copies of template1 have it, too.
  await connection.inside('template1', (session) => installTrigger(session, calls))
}

/**
 * Statements that revoke pg_export_snapshot from PUBLIC. Each call writes a file that no limit counts and that stays until the transaction
 * ends. pg_dump needs it only for --jobs. The privilege is recorded as an initial one, because pg_dump would otherwise dump the REVOKE.
 */
const REVOKE_UNBOUNDED = `
  REVOKE EXECUTE ON FUNCTION pg_catalog.pg_export_snapshot() FROM PUBLIC;
  DELETE FROM pg_catalog.pg_init_privs WHERE classoid = 'pg_catalog.pg_proc'::regclass AND objoid = 'pg_catalog.pg_export_snapshot()'::regprocedure;
  INSERT INTO pg_catalog.pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
  SELECT oid, 'pg_catalog.pg_proc'::regclass, 0, 'i', proacl FROM pg_catalog.pg_proc WHERE oid = 'pg_catalog.pg_export_snapshot()'::regprocedure`

interface Adoption {
  readonly owner: string
  readonly origin: Origin
  /** Calls that the trigger names which answers a tenant's CREATE EXTENSION. Absent: the database gets no trigger; the watchdog brings it. */
  readonly calls?: ExtensionCalls
}

/** Makes `owner` the owner of all objects in the session's database, which is new. */
export async function adopt(session: Session, { owner, origin, calls }: Adoption): Promise<void> {
  const role = quoteName(owner)
  if (calls) await installTrigger(session, calls)
  if (origin.template === undefined) {
    await session.query(`ALTER SCHEMA public OWNER TO ${role}; REVOKE ALL ON SCHEMA public FROM PUBLIC; ${REVOKE_UNBOUNDED}`)
    return
  }
  await replaceRole(session, origin.template, owner)
}
