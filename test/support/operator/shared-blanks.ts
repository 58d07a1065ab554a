import { mkdir, symlink } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { blanksIn } from '../../../operator/server/process/files/paths.ts'

export const SHARED_BLANKS = fileURLToPath(new URL('../../../node_modules/.cache/mooring/blanks', import.meta.url))

/**
 * Lets servers in `directory` be copies of prepared data directories that all tests and later runs share. The first user creates
 * those. `directory` must exist, without prepared ones.
 */
export async function shareBlanks(directory: string): Promise<void> {
  await mkdir(SHARED_BLANKS, { recursive: true, mode: 0o700 })
  await symlink(SHARED_BLANKS, blanksIn(directory))
}
