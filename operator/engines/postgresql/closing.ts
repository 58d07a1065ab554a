import { type Connection, quoteText, type Session } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'

/** Maximum wait in ms for the row of a role or database. A caller has 5 s for this, for the mark and for the end of the sessions. */
const LOCK_MS = 2_000
/** Query that lowers the session's wait for a lock to {@link LOCK_MS} until the end of the transaction. */
const WAIT_BRIEFLY = `
  SELECT set_config(name, least(setting::int, ${LOCK_MS})::text, true) FROM pg_settings WHERE name = 'lock_timeout'`

const SETTING = 'session_preload_libraries'

/**
 * Mark of a closed database: the name of a library that no server has. The server ends each login whose {@link SETTING} names it. A discarded
 * database has the name that it is to get, `trash_…`, as its mark.
 */
export const Mark = { disabled: 'mooring_disabled', suspended: 'mooring_suspended' } as const

/** Returns SQL for the mark of the database with the oid of this expression; null for an open one. */
export const markOf = (oid: string): string =>
  `(SELECT substring(setconfig[1] FROM '^${SETTING}=(.*)$') FROM pg_db_role_setting WHERE setdatabase = ${oid} AND setrole = 0)`

/** Returns SQL for the mark of the database with the name of this expression. */
export const markOfName = (name: string): string => markOf(`(SELECT oid FROM pg_database WHERE datname = ${name})`)

/**
 * Closes a database by its mark, which replaces a former one. Waits for no tenant: a tenant can lock the rows of its role and of its database, but
 * not the settings that a database has for all roles.
 */
async function mark(session: Session, name: string, value: string): Promise<void> {
  await session.query(
    `WITH closed AS (SELECT oid FROM pg_database WHERE datname = $1),
       known AS (
         UPDATE pg_db_role_setting SET setconfig = ARRAY[$2] FROM closed WHERE setdatabase = oid AND setrole = 0 RETURNING setrole)
     INSERT INTO pg_db_role_setting SELECT oid, 0, ARRAY[$2] FROM closed WHERE NOT EXISTS (SELECT FROM known)`,
    [name, `${SETTING}=${value}`],
  )
}

/** Returns the statement that removes the mark of a database: every mark, or this one. */
export function unmarking(name: string, value?: string): string {
  const only = value === undefined ? '' : ` AND setconfig[1] = ${quoteText(`${SETTING}=${value}`)}`
  return `DELETE FROM pg_db_role_setting USING pg_database
    WHERE setdatabase = oid AND datname = ${quoteText(name)} AND setrole = 0${only}`
}

/** Returns the statement that closes a role as the mark of its database does, which is about to be discarded. */
export function keepingClosed(name: string): string {
  const found = markOfName('rolname')
  return `UPDATE pg_authid SET rolcanlogin = rolcanlogin AND ${found} <> '${Mark.disabled}',
      rolvaliduntil = CASE ${found} WHEN '${Mark.suspended}' THEN '-infinity' ELSE rolvaliduntil END
    WHERE rolname = ${quoteText(name)} AND ${found} IS NOT NULL`
}

/**
 * Runs statements that close the login of a name, in one transaction. When the tenant keeps its role or database locked in a session that nothing
 * ends, closes the database by a mark instead. Returns whether the statements took effect.
 */
export async function closeLogin(
  { tenants }: Pick<Connection, 'tenants'>,
  name: string,
  by: { readonly statements: string; readonly mark: string },
): Promise<boolean> {
  try {
    await tenants.query(`${WAIT_BRIEFLY}; ${by.statements}`)
    return true
  } catch (error) {
    if (sqlStateOf(error) !== SqlState.lockNotAvailable) throw error
    await mark(tenants, name, by.mark)
    return false
  }
}
