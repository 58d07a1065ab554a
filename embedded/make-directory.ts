import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const isCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code

/**
 * Makes a directory and those above it, as `mkdir -p` does. Node's own way to do so goes on for ever where the system says of a new entry that
 * its directory is not there, as in `/proc`.
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
