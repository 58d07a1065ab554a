import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import { type ConnectionRecord, type JournalWriter, EVENT_DAYS } from '../../journal/port.ts'
import type { EdgeClock } from '../clock.ts'
import type { Connection, End } from './connection.ts'
import type { SshLimits } from './limits.ts'
import { MinuteCounter } from '../counters.ts'
import type { SshMetrics } from './metrics.ts'
import type { RefusedLogin } from './user-auth.ts'

export interface ConnectionJournalDeps extends EdgeClock {
  /** Name of this edge, for its records. */
  readonly edge: string
  readonly journal: Pick<JournalWriter, 'connection'>
  readonly limits: Pick<SshLimits, 'refusalsPerTunnel'>
  readonly metrics: Pick<SshMetrics, 'loggedIn' | 'refused' | 'unrecorded' | 'ended'>
  readonly log: Pick<Logger, 'error'>
}

/** Retention of records in the journal, minus one day because clocks differ. */
const KEPT_MS = (EVENT_DAYS - 1) * 86_400_000

/** Number of the last digits of a UUID, after its last hyphen. */
const TAIL = 12

/** Part of a connection that its records contain. */
export type Recorded = Pick<Connection, 'id' | 'clientIp' | 'login'>

/** Counts logins, refusals and ends of connections, and records them in the journal of their tunnel. */
export interface ConnectionJournal {
  /** @param tunnel id of the tunnel that the client has logged in to */
  loggedIn(connection: Recorded, tunnel: string | undefined): void
  refused(connection: Recorded, login: RefusedLogin): void
  /** Writes the login record again, to a journal that replaced the former one. A journal that has the record ignores it. */
  again(connection: Recorded): void
  /** Records the end of a connection that had logged in. */
  ended(connection: Recorded, end: End): void
}

type LoginIdentity = Pick<ConnectionRecord, 'authMethod' | 'keyFingerprint' | 'passwordId'>

interface ConnectionEvent extends Pick<ConnectionRecord, 'tunnel' | 'type' | 'reason' | 'durationMs'> {
  readonly identity: LoginIdentity
}

export function createConnectionJournal(deps: ConnectionJournalDeps): ConnectionJournal {
  const { edge, journal, limits, metrics, log, now, date } = deps
  const refusals = new MinuteCounter(limits.refusalsPerTunnel, now)
  /** Login records by connection. The tunnel may be deleted when the connection ends, as the cause of that end. */
  const logins = new WeakMap<Recorded, ConnectionRecord>()

  function recordOf({ id: sessionId, clientIp }: Recorded, { identity, ...event }: ConnectionEvent): ConnectionRecord {
    return { id: randomUUIDv7(), at: date(), edge, clientIp, sessionId, ...identity, ...event }
  }

  function keep(record: ConnectionRecord): void {
    journal.connection(record).catch((error: unknown) => {
      log.error({ err: error, type: record.type }, 'recording a connection in the journal failed')
    })
  }

  return {
    loggedIn(connection, tunnel) {
      if (connection.login) metrics.loggedIn(connection.login.authMethod)
      if (tunnel === undefined) return
      const record = recordOf(connection, {
        tunnel,
        type: 'connect',
        reason: null,
        durationMs: null,
        identity: identityOf(connection),
      })
      logins.set(connection, record)
      keep(record)
    },

    again(connection) {
      const record = logins.get(connection)
      if (!record) return
      // The journal rejects an id that is older than its retention.
      keep(date() - record.at < KEPT_MS ? record : { ...record, id: randomUUIDv7() })
    },

    refused(connection, { route, refusal, authMethod, fingerprint = null, passwordId = null }) {
      metrics.refused(refusal)
      const { id: tunnel } = route
      if (refusals.reached(tunnel)) {
        metrics.unrecorded()
        return
      }
      refusals.add(tunnel)
      const identity = { authMethod, keyFingerprint: fingerprint, passwordId }
      keep(recordOf(connection, { tunnel, type: 'refused', reason: refusal, durationMs: null, identity }))
    },

    ended(connection, end) {
      metrics.ended(end.reason)
      const login = logins.get(connection)
      if (!login) return
      const record = recordOf(connection, { tunnel: login.tunnel, type: 'disconnect', ...end, identity: identityOf(connection) })
      keep({ ...record, id: idAfter(login.id, record.id) })
    },
  }
}

/**
 * Returns `id` when it sorts after `former`, else the one next to `former`. Readers order records by id, and ids of one millisecond, or from
 * before the clock was set back, have no order of their own.
 */
function idAfter(former: string, id: string): string {
  if (id > former) return id
  const tail = (Number.parseInt(former.slice(-TAIL), 16) + 1).toString(16).padStart(TAIL, '0')
  return former.slice(0, -TAIL) + tail.slice(-TAIL)
}

const identityOf = ({ login }: Recorded): LoginIdentity => ({
  authMethod: login?.authMethod ?? null,
  keyFingerprint: login?.authMethod === 'key' ? login.keyFingerprint : null,
  passwordId: login?.authMethod === 'token' ? login.passwordId : null,
})
