import { randomUUID } from 'node:crypto'
import { Secret } from '../../crds/core.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { type Motor, partsOf } from '../../crds/motor.ts'
import { requiresTls, type ServerTls } from '../../crds/formats/server-tls.ts'
import { annotations, labels } from '../../crds/names.ts'
import { isStoreError, type Store } from '../../store/port.ts'
import type { Engine } from '../engines/engine.ts'
import type { Failure } from '../events/events.ts'
import { encodeSecret } from '../secret-data.ts'
import {
  type Credentials,
  type Expected,
  checkSecret,
  MANAGED_BY,
  PROVIDER,
  type SecretOwner,
  tenantName,
} from './kept-secret.ts'

/** Values from which the other entries of the Secret are built. */
export interface Address {
  readonly server: DatabaseServer
  readonly engine: Engine
  readonly host: string
  readonly port: number
  readonly tls?: ServerTls | undefined
  /** CA, in PEM, by which callers verify the server. */
  readonly ca: string
  /** File name of the CA in connection strings. */
  readonly caFile: string
}

/** Resource whose database and credentials the operator makes. */
export interface CredentialOwner extends SecretOwner {
  readonly apiVersion: string
  readonly kind: string
  readonly spec: {
    /** Text from which the name of the database begins. Default: the name of the resource. */
    readonly identifier?: string
    readonly motor: Motor
    readonly passwordVersion: number
  }
}

/** Permanent name of the owner's database and login. */
export const databaseName = ({ metadata, spec, status }: CredentialOwner): string =>
  status?.name ?? tenantName(spec.identifier ?? metadata.name, metadata.uid)

export const secretName = (owner: Pick<SecretOwner, 'metadata'>): string => `${owner.metadata.name}-credentials`
const secretKey = (owner: SecretOwner) => ({ namespace: owner.metadata.namespace ?? '', name: secretName(owner) })

/** Event about a Secret that was deleted or changed by hand: applications that have read it before have a password that stops working. */
export const passwordReplaced = (kind: Failure['kind'], owner: SecretOwner): Failure => ({
  kind,
  metadata: owner.metadata,
  reason: 'PasswordReplaced',
  note: `the Secret ${secretName(owner)} was deleted or changed by hand: it is written again, with a new password`,
})

/** Reads the owner's Secret (kept-secret.ts); undefined when there is none. */
export async function readCredentials(
  store: Store,
  expected: Expected,
): Promise<Credentials | 'damaged' | 'foreign' | undefined> {
  const secret = await store.get(Secret, secretKey(expected.owner))
  return secret && checkSecret(secret, expected)
}

/** Credentials to be written into a Secret. */
export type NewCredentials = Credentials & { readonly passwordId: string }

/** Generates name and password and records them with the chosen server, once: an existing Secret wins. */
export async function createCredentials(store: Store, owner: CredentialOwner, address: Address): Promise<Credentials> {
  const credentials = freshCredentials(owner, address)
  try {
    await store.create(Secret, {
      metadata: { ...secretKey(owner), ...secretMeta(owner, credentials) },
      type: `servicebinding.io/${typeOf(owner)}`,
      data: dataOf(owner, { credentials, address }),
    })
    return credentials
  } catch (error) {
    const expected = { owner, ca: address.ca }
    const found = isStoreError(error, 'already_exists') ? await readCredentials(store, expected) : undefined
    // A Secret that names another server than this claim: the next reconcile starts from the Secret.
    if (typeof found !== 'object' || found.server !== address.server.metadata.name) throw error
    return found
  }
}

/** Credentials with the owner's present or future name and a new password. */
export function freshCredentials(owner: CredentialOwner, { engine, server, host, port, tls }: Address): NewCredentials {
  return {
    name: databaseName(owner),
    password: engine.drawPassword(),
    server: server.metadata.name,
    passwordVersion: owner.spec.passwordVersion,
    passwordId: randomUUID(),
    host,
    port,
    usesTls: requiresTls({ host, tls }),
    tidy: true,
  }
}

/** Writes a new password of the desired version, or a new address, into the Secret. */
export async function updateCredentials(
  store: Store,
  owner: CredentialOwner,
  change: { credentials: NewCredentials; address: Address },
): Promise<void> {
  await store.mergePatch(Secret, secretKey(owner), {
    metadata: secretMeta(owner, change.credentials),
    data: dataOf(owner, change),
  })
}

/** Deletes the Secret. In a namespace that is being deleted the permission may be gone already; the Secret goes with its owner anyway. */
export async function deleteCredentials(store: Store, owner: CredentialOwner): Promise<void> {
  try {
    const secret = await store.get(Secret, secretKey(owner))
    if (!secret || !isOwn(secret, owner)) return
    await store.delete(Secret, secretKey(owner), { uid: secret.metadata.uid })
  } catch (error) {
    if (!isStoreError(error, 'not_found') && !isStoreError(error, 'forbidden')) throw error
  }
}

const typeOf = ({ spec }: CredentialOwner): string => partsOf(spec.motor).family

function secretMeta(owner: CredentialOwner, { server, passwordVersion, passwordId }: NewCredentials) {
  return {
    labels: { [labels.server]: server, [labels.managedBy]: MANAGED_BY },
    annotations: { [annotations.passwordVersion]: String(passwordVersion), [annotations.passwordId]: passwordId },
    ownerReferences: [{ apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid: owner.metadata.uid }],
  }
}

/** Entries of a Service Binding (servicebinding.io, "Well-known Secret Entries"). */
function dataOf(
  owner: CredentialOwner,
  { credentials, address }: { credentials: Credentials; address: Address },
): Record<string, string> {
  const { name, password } = credentials
  const { host, port, engine, ca, caFile } = address
  return encodeSecret({
    type: typeOf(owner),
    provider: PROVIDER,
    host,
    port: String(port),
    username: name,
    password,
    database: name,
    uri: engine.uri({ host, port, name, password, caFile: requiresTls(address) ? caFile : undefined }),
    'ca.crt': ca,
  })
}

const isOwn = (secret: Secret, { metadata }: CredentialOwner): boolean =>
  secret.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true
