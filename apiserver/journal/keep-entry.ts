import type { Logger } from 'pino'
import type { AuditRecord, JournalWriter } from '../../journal/port.ts'
import { withinBudget } from '../http/budget.ts'

export interface KeepEntryDeps {
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Pick<Logger, 'warn' | 'error'>
  /** Milliseconds that an answer waits for its entry. */
  readonly waitMs: number
}

/**
 * Resolves when the entry is kept for good, or after some time when the journal is away: the change is made by then, and its entry follows.
 * Never throws. `about` is for the log.
 */
export async function keepEntry({ journal, log, waitMs }: KeepEntryDeps, entry: AuditRecord, about: object): Promise<void> {
  const kept = journal.audit(entry).then(
    () => ({}),
    (error: unknown) => {
      log.error({ err: error, ...about }, 'an audit entry was not kept')
      return {}
    },
  )
  const done = await withinBudget(waitMs, (signal) => Promise.race([kept, rejectedBy(signal)]))
  if (!done) log.warn(about, 'the journal is away: an audit entry waits to be kept')
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
