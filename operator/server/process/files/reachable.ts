import type { Stats } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { EngineUser } from '../spawn/engine-user.ts'

type Owned = Pick<Stats, 'mode' | 'uid' | 'gid'>

/** Whether the permission bits let `user` traverse a directory, or execute a file. Root gets no exception. */
export function mayExecute(owned: Owned, user: EngineUser): boolean {
  if (owned.uid === user.uid) return (owned.mode & 0o100) !== 0
  if (owned.gid === user.gid) return (owned.mode & 0o010) !== 0
  return (owned.mode & 0o001) !== 0
}

/** Whether `user` can execute the file at `path`, by the permission bits of the file and of every directory above it. */
export async function isReachable(path: string, user: EngineUser): Promise<boolean> {
  let at = await realpath(path)
  while (mayExecute(await stat(at), user)) {
    if (at === '/') return true
    at = dirname(at)
  }
  return false
}
