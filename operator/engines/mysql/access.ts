import { setTimeout as delay } from 'node:timers/promises'
import { hexOf, lastOf, rangesOf } from '../../../crds/formats/address-range.ts'
import { MooringError } from '../../../shared/errors.ts'
import { type Admitted, engineSources, isAdmitted } from '../access.ts'
import { type AdminTarget, type EngineAdmin, EngineCode } from '../engine.ts'
import { accountOf, kindOf } from './catalog.ts'
import type { Connection, Session } from './connection.ts'
import { kill } from './sessions.ts'
import { INIT_CONNECT } from './settings.ts'

/** Maximum number of checks, and the time in ms between two checks: 4 s in total. */
const ROUNDS = 160
const PAUSE_MS = 25

/** Database that only the administrator may read and write. Names of tenants' databases have no underscore. */
const SCHEMA = 'mooring_access'
/** Version of {@link PROCEDURE}, kept as its comment. */
const VERSION = 'mooring 2'

/** Qualified name of {@link PROCEDURE}. */
export const VERIFY = `${SCHEMA}.verify`

const TABLE = `CREATE TABLE IF NOT EXISTS ${SCHEMA}.admitted (
  low VARBINARY(16) NOT NULL, high VARBINARY(16) NOT NULL, PRIMARY KEY (low, high)) ENGINE = InnoDB`

/**
 * Procedure that each session calls at its start (settings.ts). It fails unless the client's address is in a range of the table, and a
 * failure makes the server end the session before its first statement. An IPv4-mapped IPv6 address counts as IPv4. An invalid address is in
 * no range. The procedure runs with the privileges of its definer, the administrator; USER() is still that of the client, with the address
 * that the server sees.
 *
 * A tenant may call the procedure, too, and must not keep row locks on the table, for which `admit` would wait. So the query is a plain read
 * in a transaction of its own at READ COMMITTED, which takes no row locks whatever the session's isolation level is. Where the first COMMIT
 * or SET TRANSACTION is not permitted, as in a function or an XA transaction, the procedure fails before the query. A tenant's call commits
 * the tenant's own transaction.
 */
const PROCEDURE = `CREATE PROCEDURE ${VERIFY}() READS SQL DATA SQL SECURITY DEFINER COMMENT '${VERSION}'
BEGIN
  DECLARE ranges INT DEFAULT 0;
  DECLARE address VARBINARY(16) DEFAULT INET6_ATON(SUBSTRING_INDEX(SUBSTRING_INDEX(USER(), '@', -1), '%', 1));
  IF LENGTH(address) = 16 AND LEFT(address, 12) = X'00000000000000000000FFFF' THEN
    SET address = RIGHT(address, 4);
  END IF;
  COMMIT AND NO CHAIN NO RELEASE;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  SELECT COUNT(*) INTO ranges FROM ${SCHEMA}.admitted WHERE LENGTH(low) = LENGTH(address) AND address BETWEEN low AND high;
  COMMIT AND NO CHAIN NO RELEASE;
  IF ranges = 0 THEN
    SIGNAL SQLSTATE '28000' SET MESSAGE_TEXT = 'the firewall rules of the database exclude this address';
  END IF;
END`

const FIND_PROCEDURE = `SELECT DEFINER = CURRENT_USER() AND ROUTINE_COMMENT = '${VERSION}' AS isCurrent FROM information_schema.ROUTINES
  WHERE ROUTINE_SCHEMA = '${SCHEMA}' AND ROUTINE_NAME = 'verify'`

/** Query for the accounts without the privilege to execute the procedure. DROP USER removes the privilege, so a new account needs it again. */
const WITHOUT_PRIVILEGE = `SELECT u.User AS name FROM mysql.user u
  LEFT JOIN mysql.procs_priv p ON p.User = u.User AND p.Host = u.Host AND p.Db = '${SCHEMA}'
  WHERE u.Host = '%' AND p.User IS NULL`

/** Query for the sessions of tenants. A connection that has not logged in yet is left out: the procedure checks it after the login. */
const SESSIONS = `SELECT ID AS id, HOST AS host FROM information_schema.PROCESSLIST
  WHERE USER NOT IN ('unauthenticated user', 'system user', 'event_scheduler', SUBSTRING_INDEX(CURRENT_USER(), '@', 1))`

/** Ranges that contain every address. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']

interface Deps {
  readonly connection: Connection
  readonly target: AdminTarget
}

/**
 * Creates the restriction of a server's tenants to source addresses (docs/decisions/2026-11-25-mysql-checks-sources-at-connect.md). The
 * ranges are in a table, so that they survive a restart, and change without one. The server ends a session whose check fails for any reason.
 */
export function createAccess({ connection, target }: Deps): Pick<EngineAdmin, 'admit'> {
  let isPrepared = false
  let settled: string | undefined

  async function prepare(): Promise<void> {
    if (isPrepared) return
    const session = connection.tenants
    await session.query(`CREATE DATABASE IF NOT EXISTS ${SCHEMA}`)
    await session.query(TABLE)
    const [found] = await session.query<{ isCurrent: 0 | 1 }>(FIND_PROCEDURE)
    if (!found?.isCurrent) {
      if (found) await session.query(`DROP PROCEDURE IF EXISTS ${VERIFY}`)
      await session.query(PROCEDURE)
    }
    isPrepared = true
  }

  /** Grants tenants the privilege to execute the procedure; without it their sessions end. */
  async function grant(): Promise<void> {
    const accounts = await connection.query<{ name: string }>(WITHOUT_PRIVILEGE)
    for (const { name } of accounts.filter(({ name }) => kindOf(name) === 'tenant'))
      await connection.tenants.query(`GRANT EXECUTE ON PROCEDURE ${VERIFY} TO ${accountOf(name)}`)
  }

  async function setRanges(sources: readonly string[]): Promise<void> {
    const rows = rangesOf(sources).map(
      (range) => `(X'${hexOf(range.family, range.first)}', X'${hexOf(range.family, lastOf(range))}')`,
    )
    await connection.alone(async (session) => {
      await session.query('START TRANSACTION')
      await session.query(`DELETE FROM ${SCHEMA}.admitted`)
      if (rows.length > 0) await session.query(`INSERT INTO ${SCHEMA}.admitted VALUES ${rows.join(', ')}`)
      await session.query('COMMIT')
    })
  }

  return {
    async admit(given) {
      const sources = engineSources({ sources: given }, target)
      const rule = JSON.stringify(sources ?? EVERYWHERE)
      await prepare()
      await grant()
      if (settled === rule) return
      await setRanges(sources ?? EVERYWHERE)
      // The option file has the setting, too (settings.ts), but a running server may have started before its spec had `access`.
      await connection.tenants.query('SET GLOBAL init_connect = ?', [INIT_CONNECT])
      await endSessions(connection.watch, sources)
      settled = rule
    },
  }
}

/** Returns whether the server has {@link PROCEDURE}: it has been restricted at least once. */
export async function hasAccessProcedure(session: Session): Promise<boolean> {
  return (await session.query(FIND_PROCEDURE)).length > 0
}

/** Ends sessions from sources that are not admitted. @throws MooringError `engine_unavailable` when some remain after 4 s */
async function endSessions(session: Session, sources: Admitted['engine']): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const sessions = await session.query<{ id: number; host: string }>(SESSIONS)
    const others = sessions.filter(({ host }) => !isAdmitted(sources, addressIn(host)))
    if (others.length === 0) return
    for (const { id } of others) await kill(session, id)
    await delay(PAUSE_MS)
  }
  throw new MooringError(EngineCode.unavailable, 'sessions from sources that are not admitted are still open after 4 s')
}

/** Returns the address of an `address:port` in the list of sessions, where an IPv6 address has no brackets. */
const addressIn = (host: string): string => host.replace(/:\d+$/, '')
