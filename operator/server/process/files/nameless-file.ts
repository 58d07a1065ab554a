import { type FileHandle, open, rm } from 'node:fs/promises'
import type { EngineUser } from '../spawn/engine-user.ts'

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
