import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { openRepository } from '../backup/repository/open.ts'
import type { Repository } from '../backup/repository/port.ts'
import type { Settings } from './settings.ts'

/** Opens the repository of backups: by default a directory in the data directory. */
export async function openBackups(
  { backupDir, backupS3 }: Pick<Settings, 'backupDir' | 'backupS3'>,
  dataDir: string,
): Promise<Repository> {
  if (backupS3 !== undefined) return openRepository(backupS3)
  const directory = backupDir === undefined ? join(dataDir, 'backups') : resolve(backupDir)
  // A directory that is given may be a mount point whose volume is missing now: it is not made.
  if (backupDir === undefined) await mkdir(directory, { recursive: true, mode: 0o700 })
  return openRepository(directory)
}
