import { ProblemReason } from './agent-state.ts'
import type { Context } from './context.ts'
import { intervalsOf, withQuiet } from './postgresql/catalog/restorable.ts'
import { expiredKeys } from './postgresql/catalog/retention.ts'
import { problemOf } from './problems.ts'

/** Returns a function that removes what is older than the order's retention, and reports its own failures. No backup may run meanwhile. */
export function createRetentionJob(context: Context): () => Promise<void> {
  const { repository, prefix, clock, log, signal, catalog, problems, archiving } = context

  async function remove(retentionDays: number): Promise<void> {
    const expired = expiredKeys({
      keys: catalog.keys(),
      manifests: catalog.manifests(),
      now: clock.date(),
      retentionDays,
      intervals: intervalsOf(withQuiet(catalog.archived(), archiving.quiet())),
    })
    if (expired.length === 0) return
    const keys = expired.map((key) => `${prefix}/${key}`)
    // Before the removal: an object that may be gone must not count as restorable.
    for (const key of expired) catalog.remove(key)
    await repository.delete(keys, signal)
    log.info({ objects: expired.length }, 'expired backups removed')
  }

  return async () => {
    const retentionDays = context.order()?.retentionDays
    if (retentionDays === undefined) return
    try {
      await remove(retentionDays)
      problems.succeed('retention')
    } catch (error) {
      if (!signal.aborted) problems.fail('retention', problemOf(error, ProblemReason.unavailable))
    }
    context.changed()
  }
}
