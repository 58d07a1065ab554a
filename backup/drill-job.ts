import { hasCode } from '../shared/errors.ts'
import { type DrillReport, ProblemReason } from './agent-state.ts'
import type { Context } from './context.ts'
import { type Failures, isDrillDue, mayRetry, NO_FAILURES } from './due.ts'
import { drill } from './postgresql/drill.ts'
import { relist } from './postgresql/catalog/load.ts'
import { ARCHIVE_CORRUPT } from './postgresql/catalog/read-object.ts'
import { type Interval, intervalsOf, planRestore, type RestorePlan, withQuiet } from './postgresql/catalog/restorable.ts'
import { type Facts, takeFacts } from './postgresql/facts.ts'
import { messageOf, problemOf } from './problems.ts'

/** Time in ms within which the log up to the facts must be in the repository. */
const FLUSH_MS = 600_000

/** Returns a function that runs a restore drill when one is due, and reports its own failures. */
export function createDrillJob(context: Context): () => Promise<void> {
  const { repository, prefix, server, clock, log, schedule, signal, catalog, memory, problems, archiving } = context
  let failures: Failures = NO_FAILURES

  const intervals = (): readonly Interval[] => intervalsOf(withQuiet(catalog.archived(), archiving.quiet()))

  /** Reads the facts of the live server, and waits until the repository has the log up to them. Without facts a drill compares nothing. */
  async function archivedFacts(): Promise<Facts | undefined> {
    try {
      const facts = await takeFacts({ server, clock, signal })
      if (facts) await archiving.flush(FLUSH_MS)
      return facts
    } catch (error) {
      signal.throwIfAborted()
      log.info({ problem: messageOf(error) }, 'a restore drill compares no tables: those of the database could not be read')
      return undefined
    }
  }

  async function attempt(plan: RestorePlan, facts: Facts | undefined): Promise<void> {
    try {
      const report = await drill({ repository, prefix, server, clock, signal, limitMs: schedule.drillLimitMs }, { plan, facts })
      succeed(plan, report)
    } catch (error) {
      if (!signal.aborted) await fail(plan, error)
    }
  }

  function succeed({ base, target }: RestorePlan, report: DrillReport): void {
    const at = new Date(clock.date()).toISOString()
    memory.lastVerifiedRestore = at
    memory.drillReport = report
    memory.drillError = null
    memory.verified = new Map([...memory.verified, [base.id, at]])
    failures = NO_FAILURES
    problems.succeed('drill')
    log.info({ backup: base.id, restoredTo: new Date(target), ...report }, 'restore drill succeeded')
  }

  async function fail({ base }: RestorePlan, error: unknown): Promise<void> {
    failures = { count: failures.count + 1, at: clock.date() }
    memory.drillError = messageOf(error)
    log.warn({ backup: base.id, problem: messageOf(error) }, 'restore drill failed')
    if (!hasCode(error, ARCHIVE_CORRUPT)) return
    problems.fail('drill', problemOf(error, ProblemReason.corrupt))
    // The note that the object is corrupt shrinks the window. A failure does not matter: the agent lists again by itself.
    await relist({ repository, prefix, signal }, catalog).catch(() => undefined)
  }

  return async () => {
    const now = clock.date()
    if (!isDrillDue(memory.lastVerifiedRestore, intervals(), now, schedule.drillMs) || !mayRetry(failures, now, schedule)) return
    const facts = await archivedFacts().catch(() => undefined)
    const newest = intervals().at(-1)?.to ?? now
    const atFacts = facts && planRestore(intervals(), facts.at)
    const plan = atFacts ?? planRestore(intervals(), newest)
    if (!plan || signal.aborted) return
    await attempt(plan, atFacts && facts)
    context.changed()
  }
}
