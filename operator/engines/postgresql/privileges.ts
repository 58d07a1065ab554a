import { type Connection, type Session, quoteName } from './connection.ts'
import { assertNoneTrusted } from './extensions.ts'
import type { Origin } from '../engine.ts'
import { SqlState, sqlStateOf } from './errors.ts'

/**
 * Revokes the default privileges of PUBLIC in the databases of a new PostgreSQL cluster (docs/isolation.md). Tenants' databases have none.
 * In 14 every role may create objects in schema `public`, and objects in template1 are copied into each database that names no template.
 * @throws MooringError `server_unsafe`
 */
export async function harden(connection: Connection): Promise<void> {
  await assertNoneTrusted(connection)
  await connection.query('REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC')
  for (const database of ['postgres', 'template1']) {
    await connection.inside(database, (session) => session.query(`REVOKE ALL ON SCHEMA public FROM PUBLIC; ${REVOKE_UNBOUNDED}`))
  }
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

/** Number of attempts to remove the last grants to a former owner. */
const ATTEMPTS = 5

interface Adoption {
  readonly owner: string
  readonly origin: Origin
}

/** Makes `owner` the owner of all objects in the session's database, which is new. */
export async function adopt(session: Session, { owner, origin }: Adoption): Promise<void> {
  const role = quoteName(owner)
  if (origin.template === undefined) {
    await session.query(`ALTER SCHEMA public OWNER TO ${role}; REVOKE ALL ON SCHEMA public FROM PUBLIC; ${REVOKE_UNBOUNDED}`)
    return
  }
  const { template } = origin
  const rewritten = [...(await policies(session, template, owner)), ...(await defaultPrivileges(session, template, owner))]
  await session.query([...rewritten, `REASSIGN OWNED BY ${quoteName(template)} TO ${role}`].join('; '))
  if (await hasTraces(session, template)) await wipeTraces(session, template)
}

interface Statement {
  readonly statement: string
}

/** Returns statements that replace the former owner by the new one in policies. Other roles and PUBLIC keep theirs. */
async function policies(session: Session, from: string, to: string): Promise<readonly string[]> {
  const rows = await session.query<Statement>(
    `SELECT format('ALTER POLICY %I ON %I.%I TO %s', polname, nspname, relname,
              (SELECT string_agg(quote_ident(CASE rolname WHEN $1 THEN $2 ELSE rolname END), ', ')
               FROM pg_roles WHERE pg_roles.oid = ANY (polroles))) AS statement
     FROM pg_policy JOIN pg_class c ON c.oid = polrelid JOIN pg_namespace n ON n.oid = relnamespace
     WHERE (SELECT oid FROM pg_roles WHERE rolname = $1) = ANY (polroles)`,
    [from, to],
  )
  return rows.map(({ statement }) => statement)
}

/**
 * Returns statements that repeat the former owner's ALTER DEFAULT PRIVILEGES for the new one. An entry for all schemas replaces the built-in
 * default, so the statements revoke all privileges before they grant. An entry for one schema only adds privileges.
 */
async function defaultPrivileges(session: Session, from: string, to: string): Promise<readonly string[]> {
  const rows = await session.query<Statement>(
    `WITH entry AS (
       SELECT d.oid, defaclacl, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I', $2::text) || coalesce(' IN SCHEMA ' || quote_ident(nspname), '') AS prefix,
         nspname IS NULL AS everywhere,
         CASE defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS'
           WHEN 'T' THEN 'TYPES' WHEN 'n' THEN 'SCHEMAS' END AS kind
       FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = defaclnamespace
       WHERE defaclrole = (SELECT oid FROM pg_roles WHERE rolname = $1))
     SELECT statement FROM (
       SELECT oid, 0 AS step, format('%s REVOKE ALL ON %s FROM PUBLIC, %I', prefix, kind, $2::text) AS statement FROM entry WHERE everywhere
       UNION ALL
       SELECT entry.oid, 1, format('%s GRANT %s ON %s TO %s%s', prefix, privilege_type, kind,
         CASE WHEN grantee = 0 THEN 'PUBLIC' WHEN rolname = $1 THEN quote_ident($2) ELSE quote_ident(rolname) END,
         CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
       FROM entry CROSS JOIN aclexplode(defaclacl) LEFT JOIN pg_roles ON pg_roles.oid = grantee) s
     ORDER BY oid, step`,
    [from, to],
  )
  return rows.map(({ statement }) => statement)
}

async function hasTraces(session: Session, role: string): Promise<boolean> {
  const traces = await session.query(
    `SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)
       AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`,
    [role],
  )
  return traces.length > 0
}

/**
 * Removes the remaining grants to `role` from this database. DROP OWNED also revokes the role's privileges on databases, including its own
 * database, so the same transaction grants these again.
 */
async function wipeTraces(session: Session, role: string, attempts = ATTEMPTS): Promise<void> {
  const name = quoteName(role)
  try {
    await session.query(`DROP OWNED BY ${name}; GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${name} TO ${name}`)
  } catch (error) {
    // Concurrent copies of one template change the same catalog row, and one of them fails.
    if (attempts === 1 || sqlStateOf(error) !== SqlState.internalError) throw error
    await wipeTraces(session, role, attempts - 1)
  }
}
