import { randomUUID } from 'node:crypto'
import { type Collection, UUID } from 'mongodb'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, type Limits, LoginState, type Tenant } from '../engine.ts'
import type { Admitted } from '../access.ts'
import type { Scram, ScramCredentials } from '../scram.ts'
import type { Connection, Session } from './connection.ts'
import { endFormerWork, killSessions, type Operation } from './sessions.ts'

/**
 * User of a tenant as the server stores it (MongoDB documentation, "system.users Collection"). The operator writes the documents itself:
 * createUser takes a plain password and derives its key in the server, which takes most of a claim's time, and updateUser cannot log out
 * sessions. The server reads a changed document at the next command of each session.
 */
export interface UserDocument {
  /** `name.name`: database and login have one name. */
  readonly _id: string
  /** When this id changes, the server logs out each session of the user at its next command. */
  readonly userId: UUID
  readonly user: string
  readonly db: string
  readonly credentials: { readonly 'SCRAM-SHA-256'?: ScramCredentials }
  readonly customData?: CustomData
  readonly roles: readonly { readonly role: string; readonly db: string }[]
  /** Addresses from which the user may log in; absent or empty for all. */
  readonly authenticationRestrictions?: readonly { readonly clientSource: readonly string[] }[]
}

/** State that Mooring keeps in the user of a tenant. The tenant may read it and cannot change it. */
interface CustomData {
  /** Maximum number of connections. */
  readonly connections?: number
  readonly disabled?: boolean
  /** Whether the watchdog blocked the login (watchdog.ts). */
  readonly suspended?: boolean
  /** Time until which the login stays suspended, whatever its password. */
  readonly barredUntil?: Date
  /** Ranges from which the login is allowed, see {@link clientsFrom}. */
  readonly clients?: readonly string[]
}

type Resource = { readonly db: string; readonly collection: string } | { readonly cluster: boolean }

/** Role of a tenant or of the exporter as the server stores it (MongoDB documentation, "system.roles Collection"). */
export interface RoleDocument {
  readonly _id: string
  readonly role: string
  readonly db: string
  readonly privileges: readonly { readonly resource: Resource; readonly actions: readonly string[] }[]
  readonly roles: readonly { readonly role: string; readonly db: string }[]
}

/** Range that no client is in, since 0.0.0.0 is the address of no client. */
const NO_CLIENT = '0.0.0.0/32'
/** Restriction that no client meets. */
const NOWHERE = [{ clientSource: [NO_CLIENT] }]

/** Returns the ranges of a restriction to these sources; undefined for no restriction. An empty restriction would be none, too. */
export function clientsFrom(sources: Admitted['engine']): readonly string[] | undefined {
  return sources?.length === 0 ? [NO_CLIENT] : sources
}

const ROLE = 'tenant'

/**
 * Actions of the built-in role dbAdmin that readWrite lacks, without three. The command `profile` (enableProfiler) also changes the threshold of
 * the server's slow query log, which would then contain the documents of all tenants. `validate` and `compact` read whole collections in one
 * command, with the cache and the disk of all tenants; `compact` rewrites them, too.
 */
const ACTIONS: readonly string[] = [
  ...['bypassDocumentValidation', 'collMod', 'dropDatabase', 'indexStats', 'planCacheIndexFilter', 'planCacheRead'],
  'planCacheWrite',
]

const idOf = (name: string): string => `${name}.${name}`

export const usersOf = (session: Session): Collection<UserDocument> => session.db('admin').collection('system.users')
export const rolesOf = (session: Session): Collection<RoleDocument> => session.db('admin').collection('system.roles')

/** Reads the login of a tenant. */
export async function readUser(session: Session, name: string): Promise<UserDocument | undefined> {
  return (await usersOf(session).findOne({ _id: idOf(name) })) ?? undefined
}

/** Creates or replaces the login of a tenant. Sessions of a former login of the name are logged out. */
export async function writeUser(session: Session, user: UserDocument): Promise<void> {
  const { _id, ...rest } = user
  await usersOf(session).replaceOne({ _id }, rest, { upsert: true })
}

interface NewUser {
  readonly name: string
  readonly credentials: ScramCredentials
  readonly limits: Limits
  /** Ranges from which the login is allowed, see {@link clientsFrom}. */
  readonly clients?: readonly string[] | undefined
}

export function userDocument({ name, credentials, limits, clients }: NewUser): UserDocument {
  return {
    _id: idOf(name),
    userId: newId(),
    user: name,
    db: name,
    credentials: { 'SCRAM-SHA-256': credentials },
    customData: { connections: limits.connections, ...(clients && { clients }) },
    roles: [{ role: ROLE, db: name }],
    ...(clients && { authenticationRestrictions: [{ clientSource: clients }] }),
  }
}

/** Changes of a login. */
interface Change {
  readonly credentials?: ScramCredentials
  readonly disabled?: boolean
  /** False lifts a suspension, except one that lasts for a time. */
  readonly suspended?: boolean
  readonly barredUntil?: Date
  /** Ranges from which the login is allowed. Sessions from elsewhere are logged out. */
  readonly clients?: readonly string[] | 'all'
  /** Whether present sessions of the login are logged out. */
  readonly logOut?: boolean
}

/** Changes the login of a tenant in one write. Returns false when the tenant has no login. */
export async function changeUser(session: Session, name: string, change: Change): Promise<boolean> {
  const { credentials, disabled, suspended, barredUntil, clients, logOut = false } = change
  const { matchedCount } = await usersOf(session).updateOne({ _id: idOf(name) }, [
    {
      $set: {
        ...(credentials && { credentials: { 'SCRAM-SHA-256': credentials } }),
        ...(disabled !== undefined && { 'customData.disabled': disabled }),
        ...(suspended !== undefined && { 'customData.suspended': suspended || { $gt: ['$customData.barredUntil', '$$NOW'] } }),
        ...(barredUntil && { 'customData.barredUntil': barredUntil }),
        ...(clients !== undefined && { 'customData.clients': clients === 'all' ? '$$REMOVE' : { $literal: clients } }),
        ...(logOut && { userId: newId() }),
      },
    },
    {
      $set: {
        authenticationRestrictions: {
          $switch: {
            branches: [
              { case: { $or: ['$customData.disabled', '$customData.suspended'] }, then: { $literal: NOWHERE } },
              { case: { $isArray: '$customData.clients' }, then: [{ clientSource: '$customData.clients' }] },
            ],
            default: [],
          },
        },
      },
    },
  ])
  return matchedCount === 1
}

/** Suspends a login for some time, which a new password does not shorten, and ends its sessions. Does nothing for a tenant without a login. */
export async function suspendFor(session: Session, name: string, ms: number): Promise<void> {
  if (await changeUser(session, name, { suspended: true, barredUntil: new Date(Date.now() + ms), logOut: true }))
    await killSessions(session, [name])
}

/** Tenant of an operation or connection; undefined for the operator, the server and a connection that has not logged in. */
export function tenantOf({ effectiveUsers }: Operation): string | undefined {
  const name = effectiveUsers?.[0]?.db
  return name === 'admin' || name === 'local' ? undefined : name
}

const newId = (): UUID => new UUID(randomUUID())

/** Gives the tenant its privileges on its database, or takes them away. Sessions stay open, and their commands fail meanwhile. */
export async function setPrivileges(session: Session, name: string, privileges: 'all' | 'none'): Promise<void> {
  await rolesOf(session).replaceOne(
    { _id: `${name}.${ROLE}` },
    {
      role: ROLE,
      db: name,
      privileges: privileges === 'all' ? [{ resource: { db: name, collection: '' }, actions: ACTIONS }] : [],
      roles: privileges === 'all' ? [{ role: 'readWrite', db: name }] : [],
    },
    { upsert: true },
  )
}

/** Gives the roles of tenants that a former version of Mooring created the present privileges. Roles without privileges keep none. */
export async function renewPrivileges(session: Session): Promise<void> {
  const outdated = { role: ROLE, 'privileges.0.actions': { $exists: true, $ne: ACTIONS } }
  await rolesOf(session).updateMany(outdated, { $set: { 'privileges.0.actions': ACTIONS } })
}

/** Whether the tenant has its privileges, which is false while its database is incomplete. */
export async function isGranted(session: Session, name: string): Promise<boolean> {
  return ((await rolesOf(session).findOne({ _id: `${name}.${ROLE}` }))?.roles ?? []).length > 0
}

/** Returns the state of a login; a suspended login counts as enabled. */
export function loginOf(user: Pick<UserDocument, 'customData'> | undefined): LoginState {
  if (!user) return LoginState.absent
  return user.customData?.disabled ? LoginState.disabled : LoginState.enabled
}

/** Error of a change to a login that the server does not have. */
export const absent = (name: string): MooringError =>
  new MooringError(EngineCode.failed, `there is no login ${name} on this server`)

/** Whether a login is suspended and a new password would lift that. */
function isSuspended({ customData }: UserDocument): boolean {
  return customData?.suspended === true && (customData.barredUntil === undefined || customData.barredUntil.getTime() < Date.now())
}

interface Deps {
  readonly connection: Connection
  readonly scram: Scram
}

/** Passwords of tenants' logins on one server. */
export interface Passwords {
  /** Replaces the password, logs out every session, and lifts a suspension. One write, so that a crash leaves the old or the new password. */
  rotate(tenant: Tenant): Promise<void>
  /** Returns the names of the tenants whose login has another password than the given one, or is suspended. */
  findChanged(tenants: readonly Tenant[]): Promise<readonly string[]>
}

export function createPasswords({ connection, scram }: Deps): Passwords {
  /** Cache of matching passwords and stored keys by tenant, because each comparison takes a key derivation. */
  let known = new Map<string, { readonly password: string; readonly stored: string }>()

  async function isRight({ name, password }: Tenant, user: UserDocument): Promise<boolean> {
    const stored = user.credentials['SCRAM-SHA-256']
    if (!stored || isSuspended(user)) return false
    const before = known.get(name)
    return (before?.password === password && before.stored === stored.storedKey) || scram.proves(password, stored)
  }

  return {
    async rotate({ name, password }) {
      const credentials = await scram.credentials(password)
      if (!(await changeUser(connection, name, { credentials, suspended: false, logOut: true }))) throw absent(name)
      await endFormerWork(connection, name)
    },
    async findChanged(tenants) {
      const users = await usersOf(connection.watch)
        .find({ db: { $in: tenants.map(({ name }) => name) } })
        .toArray()
      const byName = new Map(users.map((user) => [user.db, user]))
      const right: typeof known = new Map()
      const changed: string[] = []
      for (const tenant of tenants) {
        const user = byName.get(tenant.name)
        // The reconciler finds missing logins in the catalog.
        if (!user) continue
        const stored = user.credentials['SCRAM-SHA-256']?.storedKey ?? ''
        if (await isRight(tenant, user)) right.set(tenant.name, { ...tenant, stored })
        else changed.push(tenant.name)
      }
      known = right
      return changed
    },
  }
}
