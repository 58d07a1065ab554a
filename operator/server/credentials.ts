import { Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { apiVersionOf } from '../../crds/kind.ts'
import { MooringError } from '../../crds/errors.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import { decodeSecret, encodeSecret, randomPassword } from '../secret-data.ts'
import type { AdminCredentials } from './runtime.ts'

/** The admin's name on every server; its password is the server's own. */
const ADMIN_USER = 'mooring'

export const adminSecretName = (server: string): string => `${server}-admin`

/** The admin password of a server: drawn once, before the server first starts, and never changed. */
export async function adminCredentials(store: Store, server: DatabaseServer): Promise<AdminCredentials> {
  const key = { namespace: server.metadata.namespace, name: adminSecretName(server.metadata.name) }
  const secret = (await store.get(Secret, key)) ?? (await create(store, server))
  const user = decodeSecret(secret.data, 'username')
  const password = decodeSecret(secret.data, 'password')
  if (user === undefined || password === undefined)
    throw new MooringError('invalid_secret', `Secret ${key.name} lacks username or password`)
  return { user, password }
}

async function create(store: Store, server: DatabaseServer): Promise<Secret> {
  const { name, namespace = '', uid } = server.metadata
  const key = { namespace, name: adminSecretName(name) }
  const owner = { apiVersion: apiVersionOf(DatabaseServer), kind: DatabaseServer.kind, name, uid }
  try {
    return await store.create(Secret, {
      metadata: { ...key, ownerReferences: [owner] },
      data: encodeSecret({ username: ADMIN_USER, password: randomPassword() }),
    })
  } catch (error) {
    const found = isStoreError(error, 'already_exists') ? await store.get(Secret, key) : undefined
    if (!found) throw error
    return found
  }
}
