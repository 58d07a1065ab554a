import { readFile, realpath, stat } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { MooringError } from '../../../../shared/errors.ts'

/** User and group that engines run as. */
export interface EngineUser {
  readonly uid: number
  readonly gid: number
}

const DROP_TO = 'nobody'

/** Finds a user in the text of /etc/passwd (passwd(5)). */
export function findLogin(passwd: string, name: string): EngineUser | undefined {
  for (const line of passwd.split('\n')) {
    const [login, , uid, gid] = line.split(':')
    if (login === name && /^\d+$/.test(uid ?? '') && /^\d+$/.test(gid ?? '')) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/**
 * Returns the user of this process, or `nobody` for root, as engines refuse to run as root. The user needs an entry in /etc/passwd, which
 * initdb reads.
 * @throws MooringError `no_engine_user`
 */
export async function engineUser(): Promise<EngineUser> {
  const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  if (own.uid !== 0) return own
  const user = findLogin(await readFile('/etc/passwd', 'utf8'), DROP_TO)
  if (user && user.uid !== 0) return user
  throw new MooringError('no_engine_user', `engines do not run as root, and /etc/passwd has no user "${DROP_TO}" to run them as`)
}

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
