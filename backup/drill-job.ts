import { hasCode } from '../shared/errors.ts'
import { ProblemReason } from './agent-state.ts'
import type { Context } from './context.ts'
import { type Failures, isDrillDue, mayRetry, NO_FAILURES } from './due.ts'
import { drill } from './postgresql/drill.ts'
import { relist } from './postgresql/catalog/load.ts'
import { ARCHIVE_CORRUPT } from './postgresql/catalog/read-object.ts'
import { intervalsOf, planRestore, type RestorePlan, withQuiet } from './postgresql/catalog/restorable.ts'
import { messageOf, problemOf } from './problems.ts'

/** Returns a function that runs a restore drill when one is due, and reports its own failures. */
export function createDrillJob(context: Context): () => Promise<void> {
  const { repository, prefix, server, clock, log, schedule, signal, catalog, memory, problems, archiving } = context
  let failures: Failures = NO_FAILURES

  function succeed({ base, target }: RestorePlan): void {
    const at = new Date(clock.date()).toISOString()
    memory.lastVerifiedRestore = at
    memory.drillError = null
    memory.verified = new Map([...memory.verified, [base.id, at]])
    failures = NO_FAILURES
    problems.succeed('drill')
    log.info({ backup: base.id, restoredTo: new Date(target) }, 'restore drill succeeded')
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
    const intervals = intervalsOf(withQuiet(catalog.archived(), archiving.quiet()))
    if (!isDrillDue(memory.lastVerifiedRestore, intervals, now, schedule.drillMs) || !mayRetry(failures, now, schedule)) return
    const plan = planRestore(intervals, intervals.at(-1)?.to ?? now)
    if (!plan) return
    try {
      await drill({ repository, prefix, server, clock, signal, limitMs: schedule.drillLimitMs }, plan)
      succeed(plan)
    } catch (error) {
      if (!signal.aborted) await fail(plan, error)
    }
    context.changed()
  }
}
