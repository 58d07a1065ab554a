import { Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { MooringError } from '../../shared/errors.ts'
import { isStoreError, keyOf, type Store } from '../../store/port.ts'
import { decodeSecret, encodeSecret, randomPassword } from '../secret-data.ts'
import { selectorOf } from './kubernetes/manifests.ts'
import type { AdminCredentials } from './runtime.ts'

/** Name of the admin on every server; each server has its own password. */
export const ADMIN_USER = 'mooring'

export const adminSecretName = (server: string): string => `${server}-admin`

/** Error code of {@link AdminSecrets.of} when the password of an engine with data is lost. */
export const ADMIN_SECRET_LOST = 'admin_secret_lost'

export interface AdminSecretsDeps {
  readonly store: Store
  /** Whether a server with data adopts the password that it is started with: then a lost one is replaced. */
  readonly adoptsPassword: boolean
}

/** Keeper of the servers' admin passwords, each in a Secret of its server. */
export interface AdminSecrets {
  /**
   * Returns the credentials, generated before the server first starts. A Secret that was deleted or damaged by hand is restored from the
   * memory of this process. Otherwise a new password is generated, where the engine adopts it.
   * @throws MooringError `admin_secret_lost`
   */
  of(server: DatabaseServer): Promise<AdminCredentials>
  /** Forgets a deleted server. */
  forget(server: DatabaseServer): void
}

export function createAdminSecrets({ store, adoptsPassword }: AdminSecretsDeps): AdminSecrets {
  /** Credentials by uid of the server. */
  const known = new Map<string, AdminCredentials>()

  function replacement(server: DatabaseServer): AdminCredentials {
    const before = known.get(server.metadata.uid)
    if (before) return before
    // An engine that has reported its version has data, with the password of the lost Secret.
    if (!adoptsPassword && server.status?.engineVersion !== undefined) {
      throw new MooringError(
        ADMIN_SECRET_LOST,
        `the Secret ${adminSecretName(server.metadata.name)} is gone or lacks its password`,
      )
    }
    return { user: ADMIN_USER, password: randomPassword() }
  }

  return {
    async of(server) {
      const secret = await store.get(Secret, keyOfSecret(server))
      const credentials = read(secret) ?? (await write(store, { server, secret, credentials: replacement(server) }))
      known.set(server.metadata.uid, credentials)
      return credentials
    },
    forget: ({ metadata }) => void known.delete(metadata.uid),
  }
}

/** Admin credentials of a server; generated when it has none. */
export function adminCredentials(store: Store, server: DatabaseServer): Promise<AdminCredentials> {
  return createAdminSecrets({ store, adoptsPassword: false }).of(server)
}

const keyOfSecret = ({ metadata: { namespace = '', name } }: DatabaseServer) => ({ namespace, name: adminSecretName(name) })

function read(secret: Secret | undefined): AdminCredentials | undefined {
  const user = secret && decodeSecret(secret.data, 'username')
  const password = secret && decodeSecret(secret.data, 'password')
  return user === undefined || user === '' || password === undefined || password === '' ? undefined : { user, password }
}

interface Writing {
  readonly server: DatabaseServer
  /** Existing Secret, if it is damaged. */
  readonly secret: Secret | undefined
  readonly credentials: AdminCredentials
}

/** @returns the resulting credentials: of two concurrent creations, both get those of the first */
async function write(store: Store, { server, secret, credentials }: Writing): Promise<AdminCredentials> {
  const data = encodeSecret({ username: credentials.user, password: credentials.password })
  if (secret) {
    const { uid, resourceVersion } = secret.metadata
    await store.mergePatch(Secret, keyOf(secret), { data }, { uid, resourceVersion })
    return credentials
  }
  try {
    const metadata = {
      ...keyOfSecret(server),
      labels: selectorOf(server.metadata.name),
      ownerReferences: [ownerReferenceTo(DatabaseServer, server)],
    }
    await store.create(Secret, { metadata, data })
    return credentials
  } catch (error) {
    const found = isStoreError(error, 'already_exists') ? read(await store.get(Secret, keyOfSecret(server))) : undefined
    if (!found) throw error
    return found
  }
}
