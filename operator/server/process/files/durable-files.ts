import { open, rename, type FileHandle, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { EngineUser } from '../spawn/engine-user.ts'

interface FileOptions {
  readonly mode: number
  readonly owner?: EngineUser | undefined
}

/** Replaces a file atomically. Resolves when the new content would survive a power cut. Only Mooring may write to its directory. */
export async function writeDurably(path: string, content: string, { mode, owner }: FileOptions): Promise<void> {
  const temporary = `${path}.new`
  {
    await using file = await open(temporary, 'w', mode)
    // A killed process may have left the file with another mode.
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

interface Content {
  readonly text: string
  /** User that may open the file again through an inherited descriptor. */
  readonly user: EngineUser
}

/** Creates a file without a name: only processes that inherit it can read it, and it is deleted with them. `path` is free again at once. */
export async function namelessFile(path: string, { text, user }: Content): Promise<FileHandle> {
  await rm(path, { force: true })
  const file = await open(path, 'wx+', 0o600)
  try {
    await rm(path)
    await file.chown(user.uid, user.gid)
    // Written at a position: a process that gets the file as standard input shares our file offset.
    await file.write(text, 0)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}
