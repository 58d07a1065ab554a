import type { Registry } from 'prom-client'
import { DatabaseError } from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { DatabaseJournal } from '../../journal/databases.ts'
import type { Journal } from '../../journal/port.ts'
import {
  createJournalOwner,
  createPostgresqlReader,
  createPostgresqlWriter,
  type JournalLogin,
} from '../../journal/postgresql.ts'
import type { WebhookJournal } from '../../journal/webhooks.ts'
import { type Clock, pause, systemClock } from '../../shared/timers.ts'
import { Pod } from '../kubernetes/kinds.ts'
import { createLoginKeeper } from './logins.ts'
import { createEndings, createPatience, lostSessions } from './lost-sessions.ts'
import { createOwnServer, type OwnServer, type OwnServerDeps } from './own-server.ts'
import { createLocationFinder, type JournalLocation } from './location.ts'

export interface ClusterJournalDeps extends OwnServerDeps {
  /** Secret in mooring-system with `uri` and `ca.crt` of an outside PostgreSQL; undefined when Mooring runs its own server. */
  readonly outside: string | undefined
  /** Maximum size, in bytes, of the journal's database on Mooring's own server; above it the oldest requests are removed. */
  readonly maxBytes?: number | undefined
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  readonly registry: Registry
  readonly clock?: Clock
  /** Server of the journal, in place of a DatabaseServer. */
  readonly server?: OwnServer | undefined
  /** Interval of reconciling. Default 10,000. */
  readonly intervalMs?: number
}

/** Journal of the operator, which also maintains it. */
export interface ClusterJournal extends Journal, WebhookJournal, DatabaseJournal {
  /**
   * Maintains the journal until `signal` aborts: keeps server, roles and Secrets, creates the tables, removes records past their retention,
   * and ends the sessions of edges that are gone.
   */
  run(signal: AbortSignal): Promise<void>
}

const POLL_MS = 10_000
/** Interval of reconciling during the setup. */
const SOON_MS = 1_000
const SWEEP_MS = 3_600_000
/** Interval after a failed sweep: each sweep blocks readers of a partition for a moment. */
const SWEEP_AGAIN_MS = 60_000
const OWNERSHIP = { 'app.kubernetes.io/name': 'mooring-edge' }

export function createClusterJournal(deps: ClusterJournalDeps): ClusterJournal {
  const { store, server = createOwnServer(deps), log, registry, clock = systemClock, intervalMs = POLL_MS, maxBytes } = deps
  const steps = createSteps({ log, onFailure: undo })
  const locations = createLocationFinder({ store, server, logins: createLoginKeeper(store), ca: deps.ca, outside: deps.outside })
  const patience = createPatience()
  let owner: JournalLogin | undefined
  /** Key of the location whose roles are prepared. */
  let prepared: string | undefined
  let migrated: string | undefined
  let isLaidOut = false
  let failures = 0
  let sweepAt = -Infinity

  const login = async (): Promise<JournalLogin> => {
    if (owner) return owner
    throw new MooringError('journal_away', 'the journal is not set up yet')
  }
  const reader = createPostgresqlReader({ login, log })
  const writer = createPostgresqlWriter({ login, log, registry })
  const tables = createJournalOwner({ login })
  const endings = createEndings((end) => writer.connection(end))

  /** Schedules the preparation again after an error that shows a changed password, or a dropped role or schema. */
  function undo(error: unknown): void {
    failures += 1
    const repair = repairAfter(error)
    if (repair === 'roles') prepared = undefined
    if (repair !== undefined) migrated = undefined
  }

  /** Reconciles once. @returns milliseconds until the next time */
  async function reconcile(signal: AbortSignal): Promise<number> {
    const before = failures
    const location = await steps.run('find', () => locations.find())
    if (location) await steps.run('prepare', () => prepare(location))
    const hasFailed = failures > before
    const isThere = isLaidOut && (location !== undefined || hasFailed)
    if (isThere) await maintain(signal)
    return isThere || hasFailed ? intervalMs : Math.min(SOON_MS, intervalMs)
  }

  async function maintain(signal: AbortSignal): Promise<void> {
    if (performance.now() >= sweepAt) await steps.run('sweep', sweep)
    await steps.run('make_room', makeRoom)
    await steps.run('end_lost', () => endLost(signal))
  }

  /** Prepares roles and tables of a location, once, and again after an error that requires it. */
  async function prepare(location: JournalLocation): Promise<void> {
    if (location.key !== prepared) {
      await location.prepare()
      owner = location.owner
      prepared = location.key
    }
    if (location.key === migrated) return
    await tables.migrate(location.roles)
    migrated = location.key
    isLaidOut = true
    sweepAt = -Infinity
    log.info({}, 'the journal is ready')
  }

  async function sweep(): Promise<void> {
    sweepAt = performance.now() + SWEEP_AGAIN_MS
    await tables.sweep()
    sweepAt = performance.now() + SWEEP_MS
  }

  async function makeRoom(): Promise<void> {
    if (maxBytes === undefined || deps.outside !== undefined) return
    const emptied = await tables.makeRoom(maxBytes)
    if (emptied.length > 0)
      log.warn({ maxBytes, emptied }, 'the journal’s volume is nearly full: the oldest requests or refused logins were removed')
  }

  async function endLost(signal: AbortSignal): Promise<void> {
    const underWay = endings.underWay()
    const open = await reader.openSessions()
    if (open.length === 0) return
    const { items } = await store.list(Pod, { namespace: SYSTEM_NAMESPACE, labels: OWNERSHIP })
    const due = patience
      .due(lostSessions(open, items), performance.now())
      .filter(({ session }) => !underWay.has(session.sessionId))
    // A journal that can be read but not written must not delay its own repair: remaining sessions are ended next time.
    const ended = endings.end(due).then((sessions) => {
      if (sessions > 0) log.info({ sessions }, 'sessions of edges that are gone were ended')
    })
    await Promise.race([ended, pause(clock, intervalMs, signal)])
  }

  return {
    ...reader,
    request: (record) => writer.request(record),
    connection: (record) => writer.connection(record),
    audit: (record) => writer.audit(record),
    async run(signal) {
      while (!signal.aborted) await pause(clock, await reconcile(signal), signal)
    },
    async [Symbol.asyncDispose]() {
      await writer[Symbol.asyncDispose]()
      await reader[Symbol.asyncDispose]()
    },
  }
}

interface StepsDeps {
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  /** Receives each error. */
  readonly onFailure: (error: unknown) => void
}

/** Runner of maintenance steps that isolates failures: a failed step does not prevent the others. */
interface Steps {
  /** Returns the result of `step`, or undefined when it fails. A failure is logged once until the step succeeds again. */
  run<T>(name: string, step: () => Promise<T>): Promise<T | undefined>
}

function createSteps({ log, onFailure }: StepsDeps): Steps {
  const failing = new Set<string>()
  return {
    async run(name, step) {
      try {
        const done = await step()
        if (failing.delete(name)) log.info({ step: name }, 'a maintenance step of the journal works again')
        return done
      } catch (error) {
        onFailure(error)
        if (!failing.has(name))
          log.warn({ err: error, step: name }, 'a maintenance step of the journal failed; it is tried again')
        failing.add(name)
        return undefined
      }
    },
  }
}

/** Part of the journal that was changed by hand and needs another preparation. */
type Repair = 'roles' | 'tables'

/** SQL states invalid_authorization, invalid_catalog_name and insufficient_privilege. */
const OF_ROLES = /^(28...|3D000|42501)$/
/** SQL states invalid_schema_name, undefined_table, undefined_function and undefined_column. */
const OF_TABLES = /^(3F000|42P01|42883|42703)$/

/**
 * Returns the part of the journal that an error shows to be missing or changed: roles (a login, a database or a privilege) or tables (the
 * schema). Undefined for temporary errors, such as a lock timeout. Pure.
 */
export function repairAfter(error: unknown): Repair | undefined {
  const states = sqlStates(error)
  if (states.some((state) => OF_ROLES.test(state))) return 'roles'
  return states.some((state) => OF_TABLES.test(state)) ? 'tables' : undefined
}

/** SQL states of an error, of its causes, and of the errors that it aggregates (PostgreSQL, appendix A). */
function sqlStates(error: unknown): readonly string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(sqlStates)
  if (error instanceof DatabaseError) return error.code === undefined ? [] : [error.code]
  return error instanceof Error && error.cause !== undefined ? sqlStates(error.cause) : []
}
