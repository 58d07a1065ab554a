import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { ConnectionRecord, JournalWriter } from '../../journal/port.ts'
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

/** A connection, as far as its records tell of it. */
export type Recorded = Pick<Connection, 'id' | 'clientIp' | 'login'>

/** Tells metrics and the journals of tunnels of what becomes of connections (surface, section 5). */
export interface ConnectionJournal {
  /** @param tunnel id of the tunnel that it has logged in to */
  loggedIn(connection: Recorded, tunnel: string | undefined): void
  refused(connection: Recorded, login: RefusedLogin): void
  /** One that had logged in has ended. */
  ended(connection: Recorded, end: End): void
}

type Who = Pick<ConnectionRecord, 'authMethod' | 'keyFingerprint' | 'passwordId'>

interface Happened extends Pick<ConnectionRecord, 'type' | 'reason' | 'durationMs'> {
  readonly tunnel: string | undefined
  readonly who: Who
}

export function createConnectionJournal(deps: ConnectionJournalDeps): ConnectionJournal {
  const { edge, journal, limits, metrics, log, now, date } = deps
  const refusals = new MinuteCounter(limits.refusalsPerTunnel, now)
  /** The tunnel may be gone when the connection ends, for that very reason. */
  const tunnels = new WeakMap<Recorded, string | undefined>()

  function record({ id: sessionId, clientIp }: Recorded, { tunnel, who, ...happened }: Happened): void {
    if (tunnel === undefined) return
    journal
      .connection({ id: randomUUIDv7(), tunnel, at: date(), edge, clientIp, sessionId, ...who, ...happened })
      .catch((error: unknown) => {
        log.error({ err: error, type: happened.type }, 'a connection could not be journalled')
      })
  }

  return {
    loggedIn(connection, tunnel) {
      tunnels.set(connection, tunnel)
      if (connection.login) metrics.loggedIn(connection.login.authMethod)
      record(connection, { type: 'connect', tunnel, reason: null, durationMs: null, who: whoOf(connection) })
    },

    refused(connection, { route, refusal, authMethod, fingerprint = null, passwordId = null }) {
      metrics.refused(refusal)
      const { id: tunnel } = route
      if (refusals.reached(tunnel)) {
        metrics.unrecorded()
        return
      }
      refusals.add(tunnel)
      const who = { authMethod, keyFingerprint: fingerprint, passwordId }
      record(connection, { type: 'refused', tunnel, reason: refusal, durationMs: null, who })
    },

    ended(connection, end) {
      metrics.ended(end.reason)
      record(connection, { type: 'disconnect', tunnel: tunnels.get(connection), ...end, who: whoOf(connection) })
    },
  }
}

const whoOf = ({ login }: Recorded): Who => ({
  authMethod: login?.authMethod ?? null,
  keyFingerprint: login?.authMethod === 'key' ? login.keyFingerprint : null,
  passwordId: login?.authMethod === 'token' ? login.passwordId : null,
})
