import { join } from 'node:path'
import { Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { adminSecretName } from '../../operator/server/credentials.ts'
import { decodeSecret } from '../../operator/secret-data.ts'
import { createEmbeddedStore, type EmbeddedStore } from '../../store/embedded.ts'

/** Opens the store of a stopped Mooring. */
export const openState = (dataDir: string): Promise<EmbeddedStore> => createEmbeddedStore({ path: join(dataDir, 'state.db') })

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
