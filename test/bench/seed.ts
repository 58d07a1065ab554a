import pg from 'pg'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { decodeSecret, encodeSecret } from '../../operator/secret-data.ts'
import { secretName } from '../../operator/shared-instance/credentials.ts'
import { tenantName } from '../../operator/shared-instance/naming.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Store } from '../../store/port.ts'
import { openState } from './state.ts'

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
