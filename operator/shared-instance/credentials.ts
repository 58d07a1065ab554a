import { randomUUID } from 'node:crypto'
import { Secret } from '../../crds/core.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { isLoopback } from '../../crds/formats/address-list.ts'
import { partsOf } from '../../crds/motor.ts'
import { annotations, labels } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { isStoreError, type Store } from '../../store/port.ts'
import type { Engine } from '../engines/engine.ts'
import { encodeSecret } from '../secret-data.ts'
import { type Credentials, type Expected, checkSecret, MANAGED_BY, PROVIDER, tenantName } from './kept-secret.ts'

/** Values from which the other entries of the Secret are built. */
export interface Address {
  readonly server: DatabaseServer
  readonly engine: Engine
  readonly host: string
  readonly port: number
  /** CA, in PEM, by which callers verify the server. */
  readonly ca: string
  /** File name of the CA in connection strings. */
  readonly caFile: string
}

export const secretName = (instance: SharedInstance): string => `${instance.metadata.name}-credentials`
const secretKey = (instance: SharedInstance) => ({ namespace: instance.metadata.namespace ?? '', name: secretName(instance) })

/** Reads the instance's Secret (kept-secret.ts); undefined when there is none. */
export async function readCredentials(
  store: Store,
  expected: Expected,
): Promise<Credentials | 'damaged' | 'foreign' | undefined> {
  const secret = await store.get(Secret, secretKey(expected.instance))
  return secret && checkSecret(secret, expected)
}

/** Credentials to be written into a Secret. */
export type NewCredentials = Credentials & { readonly passwordId: string }

/** Generates name and password and records them with the chosen server, once: an existing Secret wins. */
export async function createCredentials(store: Store, instance: SharedInstance, address: Address): Promise<Credentials> {
  const credentials = freshCredentials(instance, address)
  try {
    await store.create(Secret, {
      metadata: { ...secretKey(instance), ...secretMeta(instance, credentials) },
      type: `servicebinding.io/${typeOf(instance)}`,
      data: dataOf(instance, { credentials, address }),
    })
    return credentials
  } catch (error) {
    const expected = { instance, ca: address.ca }
    const found = isStoreError(error, 'already_exists') ? await readCredentials(store, expected) : undefined
    // A Secret that names another server than this claim: the next reconcile starts from the Secret.
    if (typeof found !== 'object' || found.server !== address.server.metadata.name) throw error
    return found
  }
}

/** Credentials with the instance's present or future name and a new password. */
export function freshCredentials(
  { metadata, spec, status }: SharedInstance,
  { engine, server, host, port }: Address,
): NewCredentials {
  return {
    name: status?.name ?? tenantName(spec.identifier, metadata.uid),
    password: engine.drawPassword(),
    server: server.metadata.name,
    passwordVersion: spec.passwordVersion,
    passwordId: randomUUID(),
    ...{ host, port, tidy: true },
  }
}

/** Writes a new password of the desired version, or a new address, into the Secret. */
export async function updateCredentials(
  store: Store,
  instance: SharedInstance,
  change: { credentials: NewCredentials; address: Address },
): Promise<void> {
  await store.mergePatch(Secret, secretKey(instance), {
    metadata: secretMeta(instance, change.credentials),
    data: dataOf(instance, change),
  })
}

/** Deletes the Secret. In a namespace that is being deleted the permission may be gone already; the Secret goes with its owner anyway. */
export async function deleteCredentials(store: Store, instance: SharedInstance): Promise<void> {
  try {
    const secret = await store.get(Secret, secretKey(instance))
    if (!secret || !isOwn(secret, instance)) return
    await store.delete(Secret, secretKey(instance), { uid: secret.metadata.uid })
  } catch (error) {
    if (!isStoreError(error, 'not_found') && !isStoreError(error, 'forbidden')) throw error
  }
}

const typeOf = ({ spec }: SharedInstance): string => partsOf(spec.motor).family

function secretMeta(instance: SharedInstance, { server, passwordVersion, passwordId }: NewCredentials) {
  return {
    labels: { [labels.server]: server, [labels.managedBy]: MANAGED_BY },
    annotations: { [annotations.passwordVersion]: String(passwordVersion), [annotations.passwordId]: passwordId },
    ownerReferences: [ownerReferenceTo(SharedInstance, instance)],
  }
}

/** Entries of a Service Binding (servicebinding.io, "Well-known Secret Entries"). */
function dataOf(
  instance: SharedInstance,
  { credentials, address }: { credentials: Credentials; address: Address },
): Record<string, string> {
  const { name, password } = credentials
  const { host, port, engine, ca, caFile } = address
  return encodeSecret({
    type: typeOf(instance),
    provider: PROVIDER,
    host,
    port: String(port),
    username: name,
    password,
    database: name,
    uri: engine.uri({ host, port, name, password, caFile: isLoopback(host) ? undefined : caFile }),
    'ca.crt': ca,
  })
}

const isOwn = (secret: Secret, { metadata }: SharedInstance): boolean =>
  secret.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true
