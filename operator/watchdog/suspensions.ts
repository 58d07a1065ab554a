import type { Logger } from 'pino'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { type SessionBounds, type Suspension, SuspensionCause } from '../engines/engine.ts'
import type { Events } from '../events/events.ts'
import { OUT_OF_MEMORY } from './memory-alarm.ts'
import { STATEMENT_STUCK } from './restarts.ts'

export interface SuspensionReportsDeps {
  /** Returns the instance of a tenant's name; undefined for a name without one. */
  readonly ownerOf: (name: string) => SharedInstance | undefined
  readonly events: Events
  readonly log: Pick<Logger, 'warn'>
  readonly limits: Pick<SessionBounds, 'statementMs'>
}

/** Reporter of the tenants that a check of a server, given by its object name, found or made suspended. */
export type ReportSuspensions = (server: string, suspended: readonly Suspension[]) => void

/**
 * Creates a reporter that tells each suspension once, to the log and to the owner of the instance as an Event: until the next sweep, the owner
 * sees only that a correct password is rejected.
 */
export function createSuspensionReports({ ownerOf, events, log, limits }: SuspensionReportsDeps): ReportSuspensions {
  /** Suspensions of the last check, as `cause name`, by server. */
  const reported = new Map<string, ReadonlySet<string>>()
  const until = 'logins of this instance are rejected until the next sweep'
  const about: Readonly<Record<SuspensionCause, { readonly reason: string; readonly note: string }>> = {
    [SuspensionCause.statement]: {
      reason: STATEMENT_STUCK,
      note: `a statement ran for more than ${limits.statementMs / 1_000} s and could not be ended: ${until}, and the database server may be restarted`,
    },
    [SuspensionCause.locks]: {
      reason: 'TooManyLocks',
      note: `sessions of this instance filled the table of locks that all databases of the server share: they were ended, and ${until}`,
    },
    [SuspensionCause.notifications]: {
      reason: 'TooManyNotifications',
      note: `this instance filled the queue of notifications (NOTIFY) that all databases of the server share: its sessions were ended, and ${until}`,
    },
    [SuspensionCause.catalogs]: {
      reason: 'SharedCatalogsGrow',
      note: `this instance changed its role or its grants so often that the catalogs of all databases grew: its sessions were ended, and ${until}`,
    },
    [SuspensionCause.connections]: {
      reason: 'TooManyConnections',
      note: `this instance had far more connections than its limit: they were logged out, and ${until}`,
    },
    [SuspensionCause.memory]: {
      reason: OUT_OF_MEMORY,
      note: 'an operation of this instance ran when its database server ended for lack of memory: logins of this instance are rejected for ten minutes',
    },
  }

  function reportCause(server: string, cause: SuspensionCause, databases: readonly string[]): void {
    const { reason, note } = about[cause]
    log.warn({ server, cause, databases }, 'tenants suspended for what they did to all tenants of their server')
    for (const { metadata } of databases.flatMap((name) => ownerOf(name) ?? []))
      events.failure({ kind: SharedInstance, metadata, reason, note })
  }

  return function report(server, suspended) {
    const before = reported.get(server)
    const idOf = ({ name, cause }: Suspension) => `${cause} ${name}`
    if (suspended.length === 0) reported.delete(server)
    else reported.set(server, new Set(suspended.map(idOf)))
    const fresh = suspended.filter((one) => !before?.has(idOf(one)))
    for (const [cause, group] of Map.groupBy(fresh, (one) => one.cause))
      reportCause(
        server,
        cause,
        group.map(({ name }) => name),
      )
  }
}
