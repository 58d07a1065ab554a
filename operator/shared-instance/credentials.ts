import { Secret } from '../../crds/core.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { MooringError } from '../../crds/errors.ts'
import { apiVersionOf } from '../../crds/kind.ts'
import { partsOf } from '../../crds/motor.ts'
import { annotations, labels } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import type { Engine } from '../engines/engine.ts'
import { decodeSecret, encodeSecret, randomPassword } from '../secret-data.ts'
import { tenantName } from './naming.ts'

/** What an instance's Secret says. The Secret, not the status, is where a claim begins: it fixes server, name and password. */
export interface Credentials {
  readonly name: string
  readonly password: string
  /** Object name of the DatabaseServer. */
  readonly server: string
  readonly passwordVersion: number
  readonly host: string
  readonly port: number
}

/** What the rest of the Secret follows from. */
export interface Address {
  readonly server: DatabaseServer
  readonly engine: Engine
  readonly host: string
  readonly port: number
  /** PEM of the CA that callers check the server by. */
  readonly ca: string
}

export const secretName = (instance: SharedInstance): string => `${instance.metadata.name}-credentials`
const secretKey = (instance: SharedInstance) => ({ namespace: instance.metadata.namespace ?? '', name: secretName(instance) })

/** @throws MooringError `foreign_secret` when somebody else's Secret has the name, `invalid_secret` */
export async function readCredentials(store: Store, instance: SharedInstance): Promise<Credentials | undefined> {
  const secret = await store.get(Secret, secretKey(instance))
  return secret && parse(secret, instance)
}

/** Draws name and password and records them with the chosen server, once: a Secret that is there already wins. */
export async function createCredentials(store: Store, instance: SharedInstance, address: Address): Promise<Credentials> {
  const { metadata, spec, status } = instance
  const credentials = {
    name: status?.name ?? tenantName(spec.identifier, metadata.uid),
    password: randomPassword(),
    server: address.server.metadata.name,
    passwordVersion: spec.passwordVersion,
    host: address.host,
    port: address.port,
  }
  try {
    await store.create(Secret, {
      metadata: { ...secretKey(instance), ...secretMeta(instance, credentials) },
      type: `servicebinding.io/${typeOf(instance)}`,
      data: dataOf(instance, { credentials, address }),
    })
    return credentials
  } catch (error) {
    const found = isStoreError(error, 'already_exists') ? await readCredentials(store, instance) : undefined
    if (!found) throw error
    return found
  }
}

/** Writes a new password of the wished version, or a new address, into the Secret. */
export async function updateCredentials(
  store: Store,
  instance: SharedInstance,
  change: { credentials: Credentials; address: Address },
): Promise<void> {
  const { annotations: notes, labels: marks } = secretMeta(instance, change.credentials)
  await store.mergePatch(Secret, secretKey(instance), {
    metadata: { annotations: notes, labels: marks },
    data: dataOf(instance, change),
  })
}

export function renewed(credentials: Credentials, passwordVersion: number): Credentials {
  return { ...credentials, password: randomPassword(), passwordVersion }
}

export async function deleteCredentials(store: Store, instance: SharedInstance): Promise<void> {
  const secret = await store.get(Secret, secretKey(instance))
  if (!secret || !isOwn(secret, instance)) return
  try {
    await store.delete(Secret, secretKey(instance), { uid: secret.metadata.uid })
  } catch (error) {
    if (!isStoreError(error, 'not_found')) throw error
  }
}

const typeOf = ({ spec }: SharedInstance): string => partsOf(spec.motor).family

function secretMeta({ metadata }: SharedInstance, { server, passwordVersion }: Credentials) {
  return {
    labels: { [labels.server]: server, [labels.managedBy]: 'mooring' },
    annotations: { [annotations.passwordVersion]: String(passwordVersion) },
    ownerReferences: [
      { apiVersion: apiVersionOf(SharedInstance), kind: SharedInstance.kind, name: metadata.name, uid: metadata.uid },
    ],
  }
}

/** Keys of a Service Binding (servicebinding.io, "Well-known Secret Entries"). */
function dataOf(
  instance: SharedInstance,
  { credentials, address }: { credentials: Credentials; address: Address },
): Record<string, string> {
  const { name, password } = credentials
  const { host, port, engine, ca } = address
  return encodeSecret({
    type: typeOf(instance),
    provider: 'mooring',
    host,
    port: String(port),
    username: name,
    password,
    database: name,
    uri: engine.uri({ host, port, name, password, tls: !isLoopback(host) }),
    'ca.crt': ca,
  })
}

/** Loopback needs no TLS: nobody is in between. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

const isOwn = (secret: Secret, { metadata }: SharedInstance): boolean =>
  secret.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true

function parse(secret: Secret, instance: SharedInstance): Credentials {
  if (!isOwn(secret, instance))
    throw new MooringError('foreign_secret', `Secret ${secret.metadata.name} is not this instance's own`)
  const { labels: marks, annotations: notes } = secret.metadata
  const [name, password, host] = ['database', 'password', 'host'].map((key) => decodeSecret(secret.data, key))
  const server = marks?.[labels.server]
  if (!name || !password || !host || !server)
    throw new MooringError('invalid_secret', `Secret ${secret.metadata.name} is not complete`)
  const port = Number(decodeSecret(secret.data, 'port'))
  return { name, password, server, host, port, passwordVersion: Number(notes?.[annotations.passwordVersion] ?? 0) }
}
