import { randomBytes } from 'node:crypto'
import { MooringError } from '../shared/errors.ts'
import { type Backup, ProblemReason } from './agent-state.ts'
import type { Context } from './context.ts'
import { dueBackup, type Failures, mayRetry, NO_FAILURES } from './due.ts'
import { copyBase } from './postgresql/base-backup.ts'
import { manifestKey, newBackupId } from './postgresql/catalog/keys.ts'
import { type Manifest, writeManifest } from './postgresql/catalog/manifest.ts'
import { intervalsOf, withQuiet } from './postgresql/catalog/restorable.ts'
import { messageOf, problemOf } from './problems.ts'
import { bodyOf } from './repository/small-objects.ts'

/** Time within which the WAL of a backup must be in the repository. */
const FLUSH_MS = 600_000

/** Returns a function that makes a base backup when one is due, and reports its own failures. @returns whether it made one */
export function createBackupJob(context: Context): () => Promise<boolean> {
  const { repository, prefix, server, clock, log, schedule, signal, catalog, memory, problems, archiving } = context
  let failures: Failures = NO_FAILURES

  async function attempt(kind: Manifest['kind']): Promise<void> {
    const id = newBackupId(clock.date(), randomBytes(2).toString('hex'))
    const running: Backup = {
      id,
      kind,
      startedAt: new Date(clock.date()).toISOString(),
      finishedAt: null,
      sizeBytes: 0,
      status: 'running',
      lastVerifiedRestore: null,
    }
    const others = memory.attempts
    memory.attempts = [running, ...others]
    context.changed()
    try {
      await archiving.beginWindow()
      await make({ id, kind })
      problems.succeed('spool')
      failures = NO_FAILURES
      memory.attempts = others
      problems.succeed('backup')
    } catch (error) {
      // The next agent reports the backup as failed.
      if (signal.aborted) return
      failures = { count: failures.count + 1, at: clock.date() }
      memory.attempts = [{ ...running, status: 'failed', error: messageOf(error) }, ...others]
      problems.fail('backup', problemOf(error, ProblemReason.backupFailed))
    }
  }

  async function make(backup: Pick<Manifest, 'id' | 'kind'>): Promise<void> {
    const { bytesPerSecond } = schedule
    const manifest = await copyBase({ repository, prefix, server, clock, bytesPerSecond }, backup, signal)
    await archiving.flush(FLUSH_MS)
    const [interval] = intervalsOf({ bases: [manifest], wal: catalog.archived().wal, quiet: [] })
    if (!interval) throw new MooringError('wal_not_archived', 'a part of the WAL that the backup needs was not archived')
    const text = Buffer.from(writeManifest(manifest))
    const key = manifestKey(backup.id)
    await repository.put(`${prefix}/${key}`, bodyOf(text), signal)
    // Only now: until its manifest is stored, the backup must not count.
    for (const part of manifest.parts) catalog.add(part)
    catalog.add({ key, sizeBytes: text.length })
    catalog.learn(manifest)
    log.info({ backup: backup.id, dataBytes: manifest.dataBytes }, 'base backup finished')
  }

  return async () => {
    const now = clock.date()
    const archived = catalog.archived()
    const order = context.order()
    const kind = dueBackup({
      intervals: intervalsOf(withQuiet(archived, archiving.quiet())),
      wal: archived.wal,
      order,
      doneVersion: memory.backupVersion,
      now,
      backupMs: schedule.backupMs,
    })
    if (!kind || !mayRetry(failures, now, schedule)) return false
    await attempt(kind)
    if (kind === 'requested' && order && !signal.aborted) memory.backupVersion = order.backupVersion
    context.changed()
    return true
  }
}
