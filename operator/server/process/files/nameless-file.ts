import { type FileHandle, open, rm } from 'node:fs/promises'
import type { EngineUser } from '../spawn/engine-user.ts'

interface Content {
  readonly text: string
  /** Who may open it anew, by way of the descriptor that it inherits. */
  readonly user: EngineUser
}

/** A file that only who inherits it can read, from its beginning, and that is gone when they all are. `path` is free again at once. */
export async function namelessFile(path: string, { text, user }: Content): Promise<FileHandle> {
  await rm(path, { force: true })
  const file = await open(path, 'wx+', 0o600)
  try {
    await rm(path)
    await file.chown(user.uid, user.gid)
    // At a position: whoever gets it as standard input shares our offset in it.
    await file.write(text, 0)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}
