import { ArchiveReason, type DatabaseArchive } from '../crds/database-archive.ts'
import type { RestoreWindow } from '../crds/parts/point-in-time-recovery.ts'

type Archive = Pick<DatabaseArchive, 'status'>

/** Returns the intervals whose every moment can be restored, oldest first. A gap in the log is between two of them. */
export function restoreWindowsOf({ status }: Archive): readonly RestoreWindow[] {
  return status?.restoreWindows ?? (status?.restoreWindow ? [status.restoreWindow] : [])
}

/** Whether a moment can be restored now. */
export function isRestorable(archive: Archive, moment: Date): boolean {
  return restoreWindowsOf(archive).some(({ earliest, latest }) => {
    return Date.parse(earliest) <= moment.getTime() && moment.getTime() <= Date.parse(latest)
  })
}

/** Maximum age in ms of the end of a window that still grows: an archive that works is less than a minute behind. */
const BEHIND_MS = 120_000

/** Whether a moment that has passed can be restored soon: it is after the end of the window, and the archive grows towards it. */
export function isRestorableSoon(archive: Archive, moment: Date, now: Date): boolean {
  const { restoreWindow, conditions = [] } = archive.status ?? {}
  const latest = Date.parse(restoreWindow?.latest ?? '')
  const isGrowing = conditions.some(
    ({ type, status, reason }) => type === 'Ready' && status === 'True' && reason === ArchiveReason.Archiving,
  )
  return isGrowing && now.getTime() - latest <= BEHIND_MS && latest < moment.getTime() && moment <= now
}

/** Describes the restorable intervals for a message: `a to b`, or `a to b, or c to d`. */
export const windowsText = (archive: Archive): string =>
  restoreWindowsOf(archive)
    .map(({ earliest, latest }) => `${earliest} to ${latest}`)
    .join(', or ')
