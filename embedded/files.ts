import { randomUUID } from 'node:crypto'
import { open, rename, rm, mkdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/**
 * Writes a file atomically: at any time, and after a power loss, a reader finds the old content or the new. The mode is exact,
 * whatever the umask: a secret is never readable by other users.
 */
export async function writeFileAtomic(path: string, content: string, mode: number): Promise<void> {
  const directory = dirname(path)
  const temporary = join(directory, `.${basename(path)}.${randomUUID()}.tmp`)
  try {
    // 'wx' does not follow a link that another user created in a shared directory.
    await using file = await open(temporary, 'wx', 0o600)
    await file.writeFile(content)
    await file.chmod(mode)
    await file.sync()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await using folder = await open(directory)
  await folder.sync()
}

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
