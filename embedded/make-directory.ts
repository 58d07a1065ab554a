import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const isCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code

/**
 * Creates a directory and its parents, as `mkdir -p` does. Node's recursive mkdir loops for ever where the system reports a
 * missing parent for every new entry, as in `/proc`.
 * @throws the system's error
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await makeOne(path)
  } catch (error) {
    if (!isCode(error, 'ENOENT') || dirname(path) === path) throw error
    await makeDirectory(dirname(path))
    await makeOne(path)
  }
}

async function makeOne(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    const isThere = isCode(error, 'EEXIST') && (await stat(path)).isDirectory()
    if (!isThere) throw error
  }
}
