import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, LoginState } from '../engine.ts'
import { kindOf, readTenant } from './catalog.ts'
import { type Connection, quoteName } from './connection.ts'
import { removeRole } from './role-traces.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'
import { SqlState, sqlStateOf } from './errors.ts'

/** Number of attempts to drop a role that receives new grants meanwhile. */
const DROP_ATTEMPTS = 5
/** Time in ms for which a caller waits for a removal. */
const PATIENCE_MS = 2_500
/** Maximum number of removals at a time, fewer than there are connections for drops. */
const CONCURRENCY = 2
/** Pause between two checks whether another removal has ended. */
const PAUSE_MS = 50

interface Deps {
  readonly connection: Connection
  /** Names of databases that this process is building, which must not be dropped. */
  readonly inFlight: ReadonlySet<string>
}

/**
 * Result of a removal. `in use`: a session of the role, or in its database, could not be ended. `stalled`: the removal has not begun, continues in
 * the background, or was stopped by a timeout, a lock, a new grant or a database that is being built. The caller repeats it.
 */
export type Removal = 'done' | 'in use' | 'stalled'

/**
 * Removal of closed databases with their roles. A removal may take long: since version 15, DROP DATABASE waits until every process of the server has
 * processed a barrier, and a loop of any tenant that checks for no interrupts keeps it waiting. So no caller waits for its end. Few begin at a
 * time: the others would wait for the same barrier, each on a connection.
 */
export interface Removals {
  /**
   * Removes the database and the role of this name, with other tenants' grants to the role, and verifies that the catalog has neither. The
   * caller has closed both for logins. Returns after 2.5 s at most.
   * @throws MooringError `engine_failed` when the catalog still has the name; other errors of the server than those of `stalled`. An error
   * after the 2.5 s is not reported: the next call meets it again.
   */
  remove(name: string): Promise<Removal>
}

/** A session in the database goes on. */
const IN_USE = 'in use'

/** SQLSTATE codes that sessions of tenants may cause: canceled by its timeout, database in use, lock not available, a new grant to the role. */
const STALLED: readonly unknown[] = [
  SqlState.queryCanceled,
  SqlState.objectInUse,
  SqlState.lockNotAvailable,
  SqlState.dependentObjects,
]

interface Run {
  readonly since: number
  readonly result: Promise<Removal>
}

export function createRemovals({ connection, inFlight }: Deps): Removals {
  const { stalls } = connection
  const running = new Map<string, Run>()

  async function dropDatabase(name: string): Promise<void> {
    await connection.drops.query(`DROP DATABASE IF EXISTS ${quoteName(name)} WITH (FORCE)`)
  }

  /** Ends the sessions of a role, and those in its database. @throws MooringError with {@link IN_USE} when one goes on */
  async function vacate(name: string): Promise<void> {
    if (!(await tryEndSessions(connection, name, END_WITHIN_MS.attempted)))
      throw new MooringError(IN_USE, `a session of ${name} goes on`)
  }

  async function dropRole(role: string, attempts = DROP_ATTEMPTS): Promise<void> {
    await vacate(role)
    try {
      await connection.tenants.query(`DROP ROLE IF EXISTS ${quoteName(role)}`)
    } catch (error) {
      if (attempts === 1 || sqlStateOf(error) !== SqlState.dependentObjects) throw error
      await release(role)
      await dropRole(role, attempts - 1)
    }
  }

  /** Removes grants and policies for the role in other tenants' databases, which would prevent DROP ROLE. */
  async function release(role: string): Promise<void> {
    // Revokes the role's privileges on databases. The maintenance database itself has no object of a tenant.
    await connection.tenants.query(`DROP OWNED BY ${quoteName(role)}`)
    for (const database of await databasesNaming(role)) {
      if (inFlight.has(database))
        throw new MooringError(EngineCode.unavailable, `${database}, which names ${role}, is being built`)
      if (kindOf(database) === 'making' || kindOf(database) === 'trash') await dropDatabase(database)
      else await releaseInside(database, role)
    }
  }

  async function databasesNaming(role: string): Promise<readonly string[]> {
    const rows = await connection.query<{ datname: string }>(
      `SELECT DISTINCT datname FROM pg_shdepend JOIN pg_database d ON d.oid = dbid
       WHERE refclassid = 'pg_authid'::regclass AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)`,
      [role],
    )
    return rows.map(({ datname }) => datname)
  }

  async function releaseInside(database: string, role: string): Promise<void> {
    await connection.inside(database, (session) => removeRole(session, role))
  }

  async function removeNow(name: string): Promise<void> {
    const found = await readTenant(connection, name)
    if (found.database) {
      // DROP DATABASE would wait for 5 s, with a lock on the database.
      await vacate(name)
      await dropDatabase(name)
    }
    if (found.login !== LoginState.absent) await dropRole(name)
    const left = await readTenant(connection, name)
    if (left.database || left.login !== LoginState.absent)
      throw new MooringError(EngineCode.failed, `${name} is still in the catalog`)
  }

  async function run(name: string): Promise<Removal> {
    try {
      await removeNow(name)
      stalls.removalDone(name)
      return 'done'
    } catch (error) {
      const code = error instanceof MooringError ? error.code : undefined
      if (code === EngineCode.unavailable) return 'stalled'
      const isInUse = code === IN_USE
      if (!isInUse && !STALLED.includes(sqlStateOf(error))) throw error
      stalls.removalStalled(name, isInUse ? 'own' : 'others')
      return isInUse ? 'in use' : 'stalled'
    }
  }

  function begin(name: string): Run {
    const result = run(name).finally(() => running.delete(name))
    // Every caller may have stopped waiting: a late failure would be an unhandled rejection.
    result.catch(() => undefined)
    const begun = { since: performance.now(), result }
    running.set(name, begun)
    return begun
  }

  /** Whether a removal takes longer than a caller waits: it probably waits for a barrier, which delays the next ones too. */
  const isStalled = (): boolean => [...running.values()].some(({ since }) => performance.now() - since > PATIENCE_MS)

  /** Returns the running removal of the name, or begins it when there is room. Returns undefined at `deadline`, or at once behind a stalled removal. */
  async function join(name: string, deadline: number): Promise<Run | undefined> {
    while (!running.has(name) && running.size >= CONCURRENCY) {
      if (isStalled() || performance.now() >= deadline) return undefined
      await delay(PAUSE_MS)
    }
    return running.get(name) ?? begin(name)
  }

  return {
    async remove(name) {
      const deadline = performance.now() + PATIENCE_MS
      const under = await join(name, deadline)
      if (!under) return 'stalled'
      const waiting = new AbortController()
      const late = delay(Math.max(0, deadline - performance.now()), 'stalled' as const, { signal: waiting.signal })
      try {
        const result = await Promise.race([under.result, late.catch(() => 'stalled' as const)])
        if (result === 'stalled' && running.has(name)) stalls.removalStalled(name, 'others')
        return result
      } finally {
        waiting.abort()
      }
    },
  }
}
