import type { Registry } from 'prom-client'
import { MooringError } from '../../crds/errors.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { createFailureLog } from '../../journal/failure-log.ts'
import type { Journal } from '../../journal/port.ts'
import {
  createJournalOwner,
  createPostgresqlReader,
  createPostgresqlWriter,
  type JournalLogin,
} from '../../journal/postgresql.ts'
import { type Clock, pause, systemClock } from '../../store/clock.ts'
import { Pod } from '../server/kubernetes/kinds.ts'
import { createLoginKeeper } from './logins.ts'
import { createPatience, endOf, lostSessions } from './lost-sessions.ts'
import { createOwnServer, type OwnServer, type OwnServerDeps } from './own-server.ts'
import { createPlaceKeeper, type JournalPlace } from './place.ts'

export interface ClusterJournalDeps extends OwnServerDeps {
  /** Secret in mooring-system with `uri` and `ca.crt` of a PostgreSQL outside; Mooring runs one itself when undefined. */
  readonly outside: string | undefined
  /** Bytes that the database on a server of Mooring's own may have; past it the oldest requests go. */
  readonly maxBytes?: number | undefined
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  readonly registry: Registry
  readonly clock?: Clock
  /** In place of a DatabaseServer. */
  readonly server?: OwnServer | undefined
  /** How often all is looked at. */
  readonly lookMs?: number
}

/** The journal as the operator has it, who also looks after it. */
export interface ClusterJournal extends Journal {
  /**
   * Until `signal` aborts: keeps server, roles and Secrets, lays the journal out, removes what is past its retention, and ends the sessions
   * of edges that are gone.
   */
  run(signal: AbortSignal): Promise<void>
}

const LOOK_MS = 10_000
/** While it is being set up. */
const SOON_MS = 1_000
const SWEEP_MS = 3_600_000
const OWNERSHIP = { 'app.kubernetes.io/name': 'mooring-edge' }

export function createClusterJournal(deps: ClusterJournalDeps): ClusterJournal {
  const { store, server = createOwnServer(deps), log, registry, clock = systemClock, lookMs = LOOK_MS, maxBytes } = deps
  const failures = createFailureLog(log, 'postgresql')
  const places = createPlaceKeeper({ store, server, logins: createLoginKeeper(store), ca: deps.ca, outside: deps.outside })
  const patience = createPatience()
  let owner: JournalLogin | undefined
  let done: string | undefined
  let sweptAt = -Infinity

  const login = async (): Promise<JournalLogin> => {
    if (owner) return owner
    throw new MooringError('journal_away', 'the journal is not set up yet')
  }
  const reader = createPostgresqlReader({ login, log })
  const writer = createPostgresqlWriter({ login, log, registry })
  const tables = createJournalOwner({ login })

  /** @throws whatever prevents it; all is looked at again then */
  async function look(signal: AbortSignal): Promise<boolean> {
    const place = await places.find()
    if (!place) return false
    if (place.key !== done) await prepare(place)
    if (performance.now() - sweptAt > SWEEP_MS) {
      await tables.sweep(Date.now())
      sweptAt = performance.now()
    }
    await makeRoom()
    await endLost(signal)
    return true
  }

  async function prepare(place: JournalPlace): Promise<void> {
    await place.prepare()
    owner = place.owner
    await tables.migrate(place.roles)
    await tables.sweep(Date.now())
    sweptAt = performance.now()
    done = place.key
    log.info({}, 'the journal is ready')
  }

  async function makeRoom(): Promise<void> {
    if (maxBytes === undefined || deps.outside !== undefined) return
    const emptied = await tables.makeRoom(maxBytes)
    if (emptied.length > 0)
      log.warn({ maxBytes, emptied }, 'the journal’s volume is nearly full: the oldest requests were removed')
  }

  async function endLost(signal: AbortSignal): Promise<void> {
    const open = await reader.openSessions()
    if (open.length === 0) return
    const { items } = await store.list(Pod, { namespace: SYSTEM_NAMESPACE, labels: OWNERSHIP })
    const due = patience.due(lostSessions(open, items), performance.now())
    // A journal that is read and cannot be written must not hold up what would mend it: the rest is for the next look.
    const kept = Promise.allSettled(due.map((lost) => writer.connection(endOf(lost, Date.now()))))
    await Promise.race([kept, pause(clock, lookMs, signal)])
    if (due.length > 0) log.info({ sessions: due.length }, 'sessions of edges that are gone were ended')
  }

  async function step(signal: AbortSignal): Promise<number> {
    try {
      const ready = await look(signal)
      failures.works()
      return ready ? lookMs : Math.min(SOON_MS, lookMs)
    } catch (error) {
      failures.fails(error)
      // Somebody may have changed a password or taken a role away.
      done = undefined
      return lookMs
    }
  }

  return {
    ...reader,
    request: (record) => writer.request(record),
    connection: (record) => writer.connection(record),
    audit: (record) => writer.audit(record),
    async run(signal) {
      while (!signal.aborted) await pause(clock, await step(signal), signal)
    },
    async [Symbol.asyncDispose]() {
      await writer[Symbol.asyncDispose]()
      await reader[Symbol.asyncDispose]()
    },
  }
}
