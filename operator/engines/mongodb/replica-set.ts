import { X509Certificate } from 'node:crypto'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { type Db, type Document, MongoClient, type MongoClientOptions } from 'mongodb'
import type { AdminTarget } from '../engine.ts'
import { addressOf, dialling, TIMEOUTS } from './connection.ts'
import { ServerCode, serverCodeOf } from './errors.ts'
import { keyFileFor, REPLICA_SET } from './settings.ts'

/** Role of the administrator. The built-in role root may not write users and roles directly (users.ts). */
const ADMIN_ROLE = 'mooringAdministrator'

/** Progress of a server that starts. */
export type Service = 'serving' | 'notYet'

export interface Bringing {
  readonly timeoutMs: number
  /** Address of the replica set's only member: one at which the server reaches itself. Default: the target's. */
  readonly member?: string | undefined
  /** Called with the certificate that a server with TLS showed. */
  readonly onCertificate?: ((certificate: X509Certificate) => void) | undefined
}

/**
 * Brings a started server into service: makes it the only member of its replica set, and creates the administrator. Repeatable after
 * a crash at any point. The operator logs in as the internal user, whose password is the key file.
 * @throws errors of the driver
 */
export async function bringIntoService(target: AdminTarget, { timeoutMs, member, onCertificate }: Bringing): Promise<Service> {
  const options = {
    ...dialling(target, { ...TIMEOUTS, connectMs: timeoutMs }),
    socketTimeoutMS: timeoutMs,
    maxPoolSize: 1,
    ...(onCertificate && { checkServerIdentity: reporting(onCertificate) }),
  }
  if ((await tryAsAdmin(target, options)) === 'serving') return 'serving'
  await using client = new MongoClient(addressOf(target), {
    ...options,
    auth: { username: '__system', password: keyFileFor(target.password) },
    authSource: 'local',
    authMechanism: 'SCRAM-SHA-256',
  })
  const admin = client.db('admin')
  await joinReplicaSet(client, member ?? `${target.host.includes(':') ? `[${target.host}]` : target.host}:${target.port}`)
  const { isWritablePrimary } = await admin.command({ hello: 1 })
  if (isWritablePrimary !== true) return 'notYet'
  await createAdmin(client, target)
  return 'serving'
}

const reporting =
  (onCertificate: NonNullable<Bringing['onCertificate']>) =>
  (host: string, shown: PeerCertificate): Error | undefined => {
    onCertificate(new X509Certificate(shown.raw))
    return checkServerIdentity(host, shown)
  }

/** Logs in as the administrator, with a new connection for each attempt, and checks that the server accepts writes. */
async function tryAsAdmin({ user, password, ...target }: AdminTarget, options: MongoClientOptions): Promise<Service> {
  await using client = new MongoClient(addressOf(target), {
    ...options,
    auth: { username: user, password },
    authSource: 'admin',
    authMechanism: 'SCRAM-SHA-256',
  })
  try {
    const { isWritablePrimary } = await client.db('admin').command({ hello: 1 })
    // Makes the server use a renewed certificate for new connections.
    if (target.ca !== undefined) await client.db('admin').command({ rotateCertificates: 1 })
    return isWritablePrimary === true ? 'serving' : 'notYet'
  } catch (error) {
    if (serverCodeOf(error) === ServerCode.authenticationFailed) return 'notYet'
    throw error
  }
}

interface ReplicaSetConfig {
  readonly version: number
  readonly members: readonly { readonly host: string }[]
}

/** Makes the server the only member of its replica set, under its present address. */
async function joinReplicaSet(client: MongoClient, host: string): Promise<void> {
  const admin = client.db('admin')
  const members = [{ _id: 0, host }]
  try {
    const { config } = (await admin.command({ replSetGetConfig: 1 })) as unknown as { config: ReplicaSetConfig }
    if (config.members[0]?.host === host) return
    await admin.command({ replSetReconfig: { ...config, version: config.version + 1, members }, force: true })
  } catch (error) {
    if (serverCodeOf(error) !== ServerCode.notYetInitialized) throw error
    await initiate(admin, members)
  }
}

/** Creates the replica set. Does nothing while the server, under a new address, still loads the configuration with its former one. */
async function initiate(admin: Db, members: readonly Document[]): Promise<void> {
  try {
    await admin.command({ replSetInitiate: { _id: REPLICA_SET, members } })
  } catch (error) {
    if (serverCodeOf(error) !== ServerCode.alreadyInitialized) throw error
  }
}

async function createAdmin(client: MongoClient, { user, password }: AdminTarget): Promise<void> {
  const admin = client.db('admin')
  const { roles } = await admin.command({ rolesInfo: ADMIN_ROLE })
  if ((roles as unknown[]).length === 0) {
    const privileges = [{ resource: { anyResource: true }, actions: ['anyAction'] }]
    await admin.command({ createRole: ADMIN_ROLE, privileges, roles: [] })
  }
  const { users } = await admin.command({ usersInfo: user })
  const change = { pwd: password, roles: [ADMIN_ROLE], mechanisms: ['SCRAM-SHA-256'] }
  await admin.command((users as unknown[]).length === 0 ? { createUser: user, ...change } : { updateUser: user, ...change })
}
