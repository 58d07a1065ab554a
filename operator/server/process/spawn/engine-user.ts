import { readFile } from 'node:fs/promises'
import { MooringError } from '../../../../shared/errors.ts'

/** Who the engines run as. */
export interface EngineUser {
  readonly uid: number
  readonly gid: number
}

const DROP_TO = 'nobody'

/** Finds a login in the text of /etc/passwd (passwd(5)). */
export function findLogin(passwd: string, name: string): EngineUser | undefined {
  for (const line of passwd.split('\n')) {
    const [login, , uid, gid] = line.split(':')
    if (login === name && /^\d+$/.test(uid ?? '') && /^\d+$/.test(gid ?? '')) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/**
 * Ourselves; or `nobody` when we are root, because engines refuse to run as root, and rightly.
 * It has to have an entry in /etc/passwd: initdb looks its own uid up.
 * @throws MooringError `no_engine_user`
 */
export async function engineUser(): Promise<EngineUser> {
  const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  if (own.uid !== 0) return own
  const user = findLogin(await readFile('/etc/passwd', 'utf8'), DROP_TO)
  if (user && user.uid !== 0) return user
  throw new MooringError('no_engine_user', `engines do not run as root, and /etc/passwd has no user "${DROP_TO}" to run them as`)
}
