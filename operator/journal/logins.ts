import { createHash } from 'node:crypto'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { JournalLogin } from '../../journal/postgresql.ts'
import type { Store } from '../../store/port.ts'
import { keepSecret, keptSecret } from '../installation/kept-secret.ts'
import { decodeSecret, randomPassword } from '../secret-data.ts'

/** Users of the journal; each has a Secret `journal-{user}` in mooring-system with `uri` and `ca.crt`. */
export const USERS = ['owner', 'edge', 'reader'] as const
export type User = (typeof USERS)[number]

const HASH_DIGITS = 12

/**
 * Name of a user's role. Roles belong to a whole server. On an outside server another installation may have its journal in another
 * database, so the name contains a hash of `database`: names have at most 63 bytes.
 */
export function roleOf(user: User, database?: string): string {
  const suffix = database === undefined ? '' : `_${createHash('sha256').update(database).digest('hex').slice(0, HASH_DIGITS)}`
  return `mooring_journal_${user}${suffix}`
}
export const secretOf = (user: User): string => `journal-${user}`

export interface Login extends JournalLogin {
  readonly role: string
  readonly password: string
}

/** Address of the journal's database, as pods reach it. */
export interface DatabaseAddress {
  readonly host: string
  readonly port: number
  readonly database: string
  /** Query of the URI, including `?`. */
  readonly options: string
  /** PEM of the CA; empty for publicly trusted CAs. */
  readonly ca: string
  readonly roleOf: (user: User) => string
}

/** Keeper of the logins that Mooring creates itself. */
export interface LoginKeeper {
  /**
   * Returns the login of a user and writes it into its Secret. An existing password stays. A deleted password is restored from the memory
   * of this process, otherwise generated anew. @throws StoreError
   */
  keep(user: User, address: DatabaseAddress): Promise<Login>
  /** Writes a login given from outside into the Secret of a user. @throws StoreError */
  hand(user: User, login: JournalLogin): Promise<void>
}

export function createLoginKeeper(store: Store): LoginKeeper {
  const known = new Map<User, string>()

  async function write(user: User, { uri, ca = '' }: JournalLogin): Promise<void> {
    const desired = { uri, 'ca.crt': ca }
    const found = await read(store, user)
    if (found?.uri === uri && found.ca === ca) return
    if (found) await keepSecret(store, secretOf(user), desired)
    else await keptSecret(store, secretOf(user), () => Promise.resolve(desired))
  }

  return {
    async keep(user, address) {
      const role = address.roleOf(user)
      const password = passwordIn((await read(store, user))?.uri, role) ?? known.get(user) ?? randomPassword()
      const login = { uri: uriOf(address, role, password), ca: address.ca, role, password }
      await write(user, login)
      known.set(user, password)
      return login
    },
    hand: write,
  }
}

async function read(store: Store, user: User): Promise<{ readonly uri: string; readonly ca: string } | undefined> {
  const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: secretOf(user) })
  if (!secret) return undefined
  return { uri: decodeSecret(secret.data, 'uri') ?? '', ca: decodeSecret(secret.data, 'ca.crt') ?? '' }
}

/** Password in a URI of Mooring's own: letters and digits. */
function passwordIn(uri: string | undefined, role: string): string | undefined {
  const url = URL.parse(uri ?? '')
  return url?.username === role && /^[A-Za-z0-9]{16,}$/.test(url.password) ? url.password : undefined
}

function uriOf({ host, port, database, options }: DatabaseAddress, role: string, password: string): string {
  return `postgresql://${role}:${password}@${host}:${port}/${encodeURIComponent(database)}${options}`
}
