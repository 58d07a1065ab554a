import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { EngineUser } from '../spawn/engine-user.ts'

interface FileOptions {
  readonly mode: number
  readonly owner?: EngineUser | undefined
}

/** Replaces a file atomically, and is back once that would survive a power cut. Its directory must be writable by us alone. */
export async function writeDurably(path: string, content: string, { mode, owner }: FileOptions): Promise<void> {
  const temporary = `${path}.new`
  {
    await using file = await open(temporary, 'w', mode)
    // The file of a run that was killed may have been left with another mode.
    await file.chmod(mode)
    if (owner) await file.chown(owner.uid, owner.gid)
    await file.writeFile(content)
    await file.sync()
  }
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

/** Makes renames in a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r')
  await directory.sync()
}
