import { quoteText, type Session } from './connection.ts'

/**
 * Changes of what the catalogs of one database say about a role, by statements on the catalogs themselves. REASSIGN OWNED, DROP OWNED and
 * DROP POLICY lock each object that they change until their transaction ends, in a table that all sessions of the server share: a tenant
 * with more objects than entries of that table would make each such statement fail, and the logins of all others meanwhile
 * (docs/decisions/2026-11-28-roles-are-changed-in-the-catalogs.md). These statements lock the catalogs only.
 */

/** Maximum number of rows that one transaction of `removeRows` deletes. After a timeout, the batches that were committed before stay deleted. */
const BATCH = 20_000

/** Column of a catalog of one database that has roles, or privileges. */
type RoleColumn = {
  readonly catalog: string
  readonly name: string
  readonly kind: 'role' | 'roles' | 'privileges'
}

/** Query of all {@link RoleColumn}s, from PostgreSQL's own list of references between catalogs. */
const COLUMNS = `
  SELECT fktable::text AS catalog, fkcols[1] AS name, CASE WHEN is_array THEN 'roles' ELSE 'role' END AS kind
  FROM pg_get_catalog_foreign_keys() JOIN pg_class c ON c.oid = fktable
  WHERE pktable = 'pg_authid'::regclass AND NOT relisshared
  UNION ALL
  SELECT attrelid::regclass::text, attname, 'privileges' FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
  WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND NOT relisshared AND atttypid = 'aclitem[]'::regtype`

/** SQL condition for the rows of pg_shdepend that belong to this database. */
const HERE = `dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
const namesRole = (role: string): string => `${HERE} AND refclassid = 'pg_authid'::regclass AND refobjid = ${oidOf(role)}`

const oidOf = (role: string): string => `${quoteText(role)}::regrole::oid`

/** SQL condition for privileges that name a role, as grantee or grantor. Names of tenants need no quotes within the text of a privilege. */
const mentions = (item: string, role: string): string =>
  `(starts_with(${item}::text, '${role}=') OR right(${item}::text, ${role.length + 1}) = '/${role}')`

/** SQL condition for rows that may name a role in a list of privileges. */
const mayMention = (list: string, role: string): string => `position('${role}' IN ${list}::text) > 0`

/**
 * Puts the role `to` wherever this database names the role `from`: owners, privileges, policies and default privileges. The database must
 * have no other sessions. Both names are names of tenants, or those of their unfinished databases.
 */
export async function replaceRole(session: Session, from: string, to: string): Promise<void> {
  const columns = await session.query<RoleColumn>(COLUMNS)
  const [old, now] = [oidOf(from), oidOf(to)]
  // The longer of two lists of privileges of one grantee stays: the new owner may have had some of the former one.
  const replaced = (list: string): string => `ARRAY(
    SELECT DISTINCT ON (split_part(text, '=', 1), split_part(text, '/', 2)) coalesce(kept, text::aclitem) FROM (
      SELECT CASE WHEN ${mentions('item', from)} THEN NULL ELSE item END AS kept,
        CASE WHEN ${mentions('item', from)} THEN regexp_replace(regexp_replace(item::text, '^${from}=', '${to}='), '/${from}$', '/${to}')
          ELSE item::text END AS text
      FROM unnest(${list}) AS item) items
    ORDER BY split_part(text, '=', 1), split_part(text, '/', 2), length(text) DESC)`
  const changes = {
    role: (name: string) => `${name} = ${now} WHERE ${name} = ${old}`,
    roles: (name: string) =>
      `${name} = ARRAY(SELECT DISTINCT unnest(array_replace(${name}, ${old}, ${now}))) WHERE ${old} = ANY (${name})`,
    privileges: (name: string) => `${name} = ${replaced(name)} WHERE ${mayMention(name, from)}`,
  }
  await session.query(
    [
      `DELETE FROM pg_default_acl WHERE defaclrole = ${now}`,
      ...columns.map(({ catalog, name, kind }) => `UPDATE ${catalog} SET ${changes[kind](name)}`),
      `UPDATE pg_shdepend SET refobjid = ${now} WHERE ${namesRole(from)}`,
      // PostgreSQL records no privileges of an owner.
      `DELETE FROM pg_shdepend granted USING pg_shdepend owned
       WHERE granted.deptype = 'a' AND owned.deptype = 'o' AND granted.refobjid = ${now} AND owned.refobjid = ${now}
         AND (granted.dbid, granted.classid, granted.objid) = (owned.dbid, owned.classid, owned.objid)`,
    ].join('; '),
  )
}

/**
 * Removes a role from this database: its privileges and those that it granted, its default privileges, policies that apply to it alone, and its
 * name in other policies. The objects of the role, which it can have in another tenant's database only in version 14, are given to the role
 * that is named like the database. Without such a role the statement fails: an object of the administrator would run with its rights. Other
 * sessions may be active: a grant that they make meanwhile remains, and DROP ROLE then fails.
 */
export async function removeRole(session: Session, role: string): Promise<void> {
  const old = oidOf(role)
  await removeRows(session, 'pg_policy', `${old} = ANY (polroles) AND array_remove(polroles, ${old}) = '{}'`)
  await removeRows(session, 'pg_default_acl', `defaclrole = ${old}`)
  for (const column of await session.query<RoleColumn>(COLUMNS)) await session.query(withoutRole(column, role))
  // A default for one schema can only add privileges, so that an empty one has no effect.
  await removeRows(session, 'pg_default_acl', `defaclnamespace <> 0 AND defaclacl = '{}'`)
}

/**
 * Returns the statement that removes a role from one column, or replaces it as owner, and changes the rows of pg_shdepend about it. One statement
 * has one snapshot, so that a row of pg_shdepend goes only with the privilege that it records.
 */
function withoutRole({ catalog, name, kind }: RoleColumn, role: string): string {
  const old = oidOf(role)
  const ofThis = `${namesRole(role)} AND ${dependentIn(catalog)}`
  switch (kind) {
    case 'role': {
      const heir = `(SELECT oid FROM pg_roles WHERE rolname = current_database())`
      return `WITH changed AS (UPDATE ${catalog} SET ${name} = ${heir} WHERE ${name} = ${old})
        UPDATE pg_shdepend SET refobjid = ${heir} WHERE ${ofThis} AND deptype = 'o'`
    }
    case 'roles':
      return `WITH changed AS (UPDATE ${catalog} SET ${name} = array_remove(${name}, ${old})
          WHERE ${old} = ANY (${name}) AND array_remove(${name}, ${old}) <> '{}' RETURNING oid)
        DELETE FROM pg_shdepend USING changed WHERE ${ofThis} AND objid = changed.oid`
    case 'privileges':
      return `WITH changed AS (UPDATE ${catalog} SET ${name} = ARRAY(SELECT item FROM unnest(${name}) AS item WHERE NOT ${mentions('item', role)})
          WHERE ${mayMention(name, role)})
        DELETE FROM pg_shdepend WHERE ${ofThis} AND deptype = 'a'`
  }
}

/** Returns the SQL condition for rows of pg_shdepend about the objects of a catalog. */
function dependentIn(catalog: string): string {
  if (catalog === 'pg_attribute') return `classid = 'pg_class'::regclass AND objsubid <> 0`
  if (catalog === 'pg_largeobject_metadata') return `classid = 'pg_largeobject'::regclass`
  return `classid = '${catalog}'::regclass AND objsubid = 0`
}

/** Removes the rows of a catalog that satisfy a condition, with the rows about them elsewhere, in several transactions. */
async function removeRows(session: Session, catalog: 'pg_policy' | 'pg_default_acl', condition: string): Promise<void> {
  let removed: number
  do {
    await session.query('BEGIN')
    // Locked first: a change that is under way would add rows about the object that later statements do not remove.
    const rows = await session.query<{ oid: string }>(
      `SELECT oid FROM ${catalog} WHERE ${condition} ORDER BY oid LIMIT ${BATCH} FOR UPDATE`,
    )
    const oids = rows.map(({ oid }) => oid)
    removed = oids.length
    if (removed > 0) for (const statement of removal(catalog)) await session.query(statement, [oids])
    await session.query('COMMIT')
  } while (removed === BATCH)
}

/** Returns the statements that remove the rows with the oids $1 of a catalog. */
function removal(catalog: 'pg_policy' | 'pg_default_acl'): readonly string[] {
  const isOne = `classid = '${catalog}'::regclass AND objid = ANY ($1::oid[])`
  return [
    // Sessions keep the policies of a table in memory until its row of pg_class changes.
    ...(catalog === 'pg_policy'
      ? ['UPDATE pg_class SET relname = relname WHERE oid IN (SELECT polrelid FROM pg_policy WHERE oid = ANY ($1::oid[]))']
      : []),
    `DELETE FROM pg_depend WHERE ${isOne}`,
    `DELETE FROM pg_shdepend WHERE ${HERE} AND ${isOne}`,
    `DELETE FROM pg_description WHERE classoid = '${catalog}'::regclass AND objoid = ANY ($1::oid[])`,
    `DELETE FROM ${catalog} WHERE oid = ANY ($1::oid[])`,
  ]
}
