import { randomUUID } from 'node:crypto'
import { chmod, lstat, mkdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { MooringError, hasCode } from '../../../../shared/errors.ts'

/** Creates a directory that every user can read and only ours can write. @throws MooringError `unsafe_directory` */
export async function makeOpenDirectory(directory: string): Promise<void> {
  const made = await mkdir(directory, { recursive: true })
  if (made) await chmod(directory, 0o755)
  if (!(await isOurs(directory))) throw unsafeDirectory(directory)
}

/** Whether a directory (not a link) is writable only by our user: its programs are then trusted. */
async function isOurs(directory: string): Promise<boolean> {
  try {
    const found = await lstat(directory)
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

function unsafeDirectory(directory: string): MooringError {
  return new MooringError('unsafe_directory', `${directory} may be written to by other users, so no engine is run from it`)
}

/**
 * Returns once the directory `target` exists: keeps one that only our user could have created, else renames what `fill` has made to it. Safe
 * to run concurrently. @throws MooringError `unsafe_directory`
 */
export async function publishDirectory(target: string, fill: (temporary: string) => Promise<void>): Promise<void> {
  const parent = dirname(target)
  for (const directory of [dirname(parent), parent]) await makeOpenDirectory(directory)
  if (!(await isOurs(target))) {
    const temporary = join(parent, `.${basename(target)}.${randomUUID()}`)
    await fill(temporary)
    // The first of several processes wins: rename(2) never replaces a directory that is not empty.
    await rename(temporary, target).catch((error: unknown) => {
      if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'EEXIST')) throw error
    })
    await rm(temporary, { recursive: true, force: true })
  }
  if (!(await isOurs(target))) throw unsafeDirectory(target)
}
