import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import pg from 'pg'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { decodeSecret, encodeSecret } from '../../operator/secret-data.ts'
import { secretName } from '../../operator/shared-instance/credentials.ts'
import { tenantName } from '../../operator/shared-instance/kept-secret.ts'
import { keyOf, type Store, type Key } from '../../store/port.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { adminSecretName } from '../../operator/server/credentials.ts'
import { createEmbeddedStore, type EmbeddedStore } from '../../store/embedded.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { openCa } from '../../operator/installation/ca.ts'
import { localIssuer } from '../../operator/tunnel/certificate-issuer.ts'
import { hostnameMark, certificateName, certificateSecret, urlOf } from '../../operator/tunnel/resources.ts'

const AT_ONCE = 500

/**
 * Copies the single instance of a stopped Mooring, with its Secret and settled status, until there are `count`. All copies refer
 * to its server.
 * @returns the names of their databases
 */
export async function copyInstance(dataDir: string, count: number): Promise<readonly string[]> {
  await using store = await openState(dataDir)
  return await copyInstanceIn(store, count)
}

/** Copies the single instance in any store that no operator uses. */
export async function copyInstanceIn(store: Store, count: number): Promise<readonly string[]> {
  const [model] = (await store.list(SharedInstance)).items
  const secret = model && (await store.get(Secret, { namespace: model.metadata.namespace, name: secretName(model) }))
  if (!model || !secret) throw new Error('there is no instance to copy')
  const names: string[] = []
  while (names.length < count - 1) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - 1 - names.length) }, (_, index) => names.length + index)
    names.push(...(await Promise.all(batch.map((number) => copy(store, { model, secret }, number)))))
  }
  return names
}

async function copy(store: Store, { model, secret }: { model: SharedInstance; secret: Secret }, number: number): Promise<string> {
  const { namespace = '', finalizers = [] } = model.metadata
  const identifier = `copy ${number}`
  const draft = {
    metadata: { namespace, name: `copy-${number}`, finalizers: [...finalizers] },
    spec: { ...model.spec, identifier },
  }
  const made = await store.create(SharedInstance, draft)
  const name = tenantName(identifier, made.metadata.uid)
  const { ownerReferences = [], labels = {}, annotations = {} } = secret.metadata
  await store.create(Secret, {
    metadata: {
      ...{ namespace, name: secretName(made), labels, annotations },
      ownerReferences: ownerReferences.map((owner) => ({ ...owner, name: made.metadata.name, uid: made.metadata.uid })),
    },
    type: secret.type,
    data: { ...secret.data, ...encodeSecret({ username: name, database: name, uri: uriOf(secret, name) }) },
  })
  await store.patchStatus(SharedInstance, keyOf(made), {
    ...model.status,
    ...{ name, user: name, secretRef: { name: secretName(made) } },
  })
  return name
}

function uriOf(secret: Secret, name: string): string {
  const uri = new URL(decodeSecret(secret.data, 'uri') ?? '')
  uri.username = uri.pathname = name
  return uri.href
}

/**
 * Adds the databases and their logins to the catalog of a running server, copied from `model`. They have no files and cannot be
 * used, but the catalog has as many rows as with ten thousand real ones.
 */
export async function enterDatabases(server: pg.ClientConfig, model: string, names: readonly string[]): Promise<void> {
  const client = new pg.Client({ ...server, database: 'postgres' })
  await client.connect()
  for (const table of ['pg_database', 'pg_authid'] as const) {
    const column = table === 'pg_database' ? 'datname' : 'rolname'
    // The first OIDs that a server assigns itself are far above these.
    await client.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(row, jsonb_build_object('oid', 10000000 + number, '${column}', name))).*
       FROM ${table} row, unnest($2::text[]) WITH ORDINALITY AS given (name, number) WHERE row.${column} = $1`,
      [model, names],
    )
  }
  await client.end()
}

/** Opens the store of a stopped Mooring. */
const openState = (dataDir: string): Promise<EmbeddedStore> => createEmbeddedStore({ path: join(dataDir, 'state.db') })

/** Returns the admin's login of the single database server of a stopped Mooring. */
export async function adminOf(dataDir: string): Promise<{ user: string; password: string }> {
  await using store = await openState(dataDir)
  const [server] = (await store.list(DatabaseServer)).items
  if (!server) throw new Error('there is no database server')
  const { namespace, name } = server.metadata
  const data = (await store.get(Secret, { namespace, name: adminSecretName(name) }))?.data ?? {}
  const [user, password] = [decodeSecret(data, 'username'), decodeSecret(data, 'password')]
  if (user === undefined || password === undefined) throw new Error('the admin has no password')
  return { user, password }
}

const TUNNELS_AT_ONCE = 32

/** Tunnel to copy, with its endpoint and the CA of its certificate. */
interface Model {
  readonly tunnel: Tunnel
  readonly endpoint: TunnelEndpoint
  readonly ca: KeyPair
}

/** Returns a valid hostname that contains the number. */
const hostnameOf = (number: number): string => number.toString(16).padStart(16, '0')

/**
 * Copies a settled tunnel until `count` tunnels exist, while no operator runs. Each copy has its own hostname and certificate,
 * and a status with them. @returns the hostnames
 */
export async function copyTunnel(store: Store, first: Key, count: number): Promise<readonly string[]> {
  const tunnel = await store.get(Tunnel, first)
  const endpoint = await store.get(TunnelEndpoint, { name: tunnel?.status?.endpointRef?.name ?? '' })
  if (!tunnel || !endpoint) throw new Error('there is no tunnel to copy')
  const model = { tunnel, endpoint, ca: await openCa(store) }
  let made = 0
  async function next(): Promise<void> {
    while (made < count - 1) await copyOneTunnel(store, model, ++made)
  }
  await Promise.all(Array.from({ length: TUNNELS_AT_ONCE }, next))
  return [tunnel.status?.hostname ?? '', ...Array.from({ length: count - 1 }, (_, index) => hostnameOf(index + 1))]
}

async function copyOneTunnel(store: Store, { tunnel, endpoint, ca }: Model, number: number): Promise<void> {
  const hostname = hostnameOf(number)
  const domain = certificateName(endpoint, hostname)
  const at = new Date()
  const signed = await issueCertificate({ ca, names: [domain], now: at })
  await store.create(Secret, certificateSecret(endpoint, hostname, { ...signed, at }))
  const { metadata, spec, status } = tunnel
  const key = { namespace: metadata.namespace ?? '', name: `copy-${number}` }
  const mark = hostnameMark(localIssuer(() => ca).mac, key, hostname)
  await store.create(Tunnel, {
    metadata: { ...key, finalizers: [FINALIZER], annotations: { [annotations.hostname]: mark } },
    spec,
  })
  const expiresAt = new X509Certificate(signed.certificate).validToDate.toISOString()
  const certificate = { ...status?.certificate, status: 'valid' as const, domain, obtainedAt: at.toISOString(), expiresAt }
  const url = urlOf(endpoint, hostname)
  const conditions = status?.conditions?.map((condition) => ({ ...condition, message: url }))
  await store.patchStatus(Tunnel, key, { ...status, hostname, url, certificate, conditions })
}
