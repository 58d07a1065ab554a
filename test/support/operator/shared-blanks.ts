import { mkdir, symlink } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { blanksIn } from '../../../operator/server/process/files/paths.ts'

export const SHARED_BLANKS = fileURLToPath(new URL('../../../node_modules/.cache/mooring/blanks', import.meta.url))

/**
 * For tests that are not about how a data directory is made: servers in `directory` are copied from blanks that all tests share, and
 * the next run's. Whoever comes first makes them. `directory` must be there, and have no blanks yet.
 */
export async function shareBlanks(directory: string): Promise<void> {
  await mkdir(SHARED_BLANKS, { recursive: true, mode: 0o700 })
  await symlink(SHARED_BLANKS, blanksIn(directory))
}
