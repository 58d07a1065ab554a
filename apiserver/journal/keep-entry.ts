import type { Logger } from 'pino'
import type { AuditRecord, JournalWriter } from '../../journal/port.ts'
import { withinBudget } from '../http/budget.ts'

export interface KeepEntryDeps {
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Pick<Logger, 'warn' | 'error'>
  /** Maximum wait of an answer for its entry, in milliseconds. */
  readonly waitMs: number
}

/**
 * Writes an audit entry. Resolves when the entry is written, or after `waitMs` when the journal is unavailable: the change is already made, and the
 * entry is written later. Never throws. `about` goes to the log.
 */
export async function keepEntry({ journal, log, waitMs }: KeepEntryDeps, entry: AuditRecord, about: object): Promise<void> {
  const kept = journal.audit(entry).then(
    () => ({}),
    (error: unknown) => {
      log.error({ err: error, ...about }, 'an audit entry could not be written')
      return {}
    },
  )
  const done = await withinBudget(waitMs, (signal) => Promise.race([kept, rejectedBy(signal)]))
  if (!done) log.warn(about, 'the journal is unavailable: an audit entry is queued')
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
