import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

const MEMORY_BYTES = 4 * 1024 ** 3

/**
 * Returns the parent directory of test databases, in memory where there is space: a database has 300 files, which some disks take
 * most of a second to remove.
 */
export async function scratch(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  return memory && memory.bavail * memory.bsize > MEMORY_BYTES ? '/dev/shm' : tmpdir()
}
