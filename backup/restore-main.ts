import { access, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import { runTask } from '../process/run.ts'
import { restore } from './postgresql/restore.ts'
import { openRepository } from './repository/open.ts'
import { parseRestoreSettings, type RestoreSettings } from './settings.ts'

/** Fills the volume of a new database server of a cluster with backups, in an init container of its pod. */
await runTask<RestoreSettings>({ parse: parseRestoreSettings, work })

/** The data directory gets its name when it is complete, so a repetition after a crash begins again or does nothing. */
async function work(settings: RestoreSettings, log: Logger): Promise<void> {
  const { data, prefix } = settings
  if (await exists(data)) {
    log.info('the server has data: nothing is restored')
    return
  }
  const into = `${data}.restored`
  const repository = openRepository(settings.repository)
  const request = { repository, prefix, time: new Date(settings.restoreTime), into, signal: stopSignal() }
  const { recoveredTo, backupId } = await restore({ ...request, onProgress: progressLog(log) })
  await rename(into, data)
  await using folder = await open(dirname(data))
  await folder.sync()
  log.info({ backup: backupId, recoveredTo: recoveredTo.toISOString() }, 'the files of the backup are complete')
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** Returns a signal that aborts when the pod is stopped. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => controller.abort())
  return controller.signal
}

function progressLog(log: Logger) {
  let shown = -1
  return ({ doneBytes, totalBytes }: { readonly doneBytes: number; readonly totalBytes: number }): void => {
    const percent = totalBytes === 0 ? 100 : Math.floor((10 * doneBytes) / totalBytes) * 10
    if (percent <= shown) return
    shown = percent
    log.info({ percent, totalBytes }, 'files of the backup are being fetched')
  }
}
