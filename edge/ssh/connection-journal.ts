import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { ConnectionRecord, JournalWriter } from '../../journal/port.ts'
import { EVENT_DAYS } from '../../journal/retention-days.ts'
import type { EdgeClock } from '../clock.ts'
import type { Connection, End } from './connection.ts'
import type { SshLimits } from './limits.ts'
import { MinuteCounter } from './login-limits.ts'
import type { SshMetrics } from './metrics.ts'
import type { RefusedLogin } from './user-auth.ts'

export interface ConnectionJournalDeps extends EdgeClock {
  /** Name of this edge, which its records carry. */
  readonly edge: string
  readonly journal: Pick<JournalWriter, 'connection'>
  readonly limits: Pick<SshLimits, 'refusalsPerTunnel'>
  readonly metrics: Pick<SshMetrics, 'loggedIn' | 'refused' | 'unrecorded' | 'ended'>
  readonly log: Pick<Logger, 'error'>
}

/** A day less than it is kept: clocks differ. */
const KEPT_MS = (EVENT_DAYS - 1) * 86_400_000

/** A connection, as far as its records tell of it. */
export type Recorded = Pick<Connection, 'id' | 'clientIp' | 'login'>

/** Tells metrics and the journals of tunnels of what becomes of connections (surface, section 5). */
export interface ConnectionJournal {
  /** @param tunnel id of the tunnel that it has logged in to */
  loggedIn(connection: Recorded, tunnel: string | undefined): void
  refused(connection: Recorded, login: RefusedLogin): void
  /** Tells again that it has logged in, by the same record, which a journal that has it takes for nothing new: it is another one. */
  again(connection: Recorded): void
  /** One that had logged in has ended. */
  ended(connection: Recorded, end: End): void
}

type LoginIdentity = Pick<ConnectionRecord, 'authMethod' | 'keyFingerprint' | 'passwordId'>

interface ConnectionEvent extends Pick<ConnectionRecord, 'tunnel' | 'type' | 'reason' | 'durationMs'> {
  readonly identity: LoginIdentity
}

export function createConnectionJournal(deps: ConnectionJournalDeps): ConnectionJournal {
  const { edge, journal, limits, metrics, log, now, date } = deps
  const refusals = new MinuteCounter(limits.refusalsPerTunnel, now)
  /** What told that a connection had logged in. Its tunnel may be gone when it ends, for that very reason. */
  const logins = new WeakMap<Recorded, ConnectionRecord>()

  function recordOf({ id: sessionId, clientIp }: Recorded, { identity, ...event }: ConnectionEvent): ConnectionRecord {
    return { id: randomUUIDv7(), at: date(), edge, clientIp, sessionId, ...identity, ...event }
  }

  function keep(record: ConnectionRecord): void {
    journal.connection(record).catch((error: unknown) => {
      log.error({ err: error, type: record.type }, 'a connection could not be journalled')
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
      // By its first id one of a day that is kept no more would be refused.
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
      if (login)
        keep(recordOf(connection, { tunnel: login.tunnel, type: 'disconnect', ...end, identity: identityOf(connection) }))
    },
  }
}

const identityOf = ({ login }: Recorded): LoginIdentity => ({
  authMethod: login?.authMethod ?? null,
  keyFingerprint: login?.authMethod === 'key' ? login.keyFingerprint : null,
  passwordId: login?.authMethod === 'token' ? login.passwordId : null,
})
