import { Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { MooringError } from '../../shared/errors.ts'
import { isStoreError } from '../../store/errors.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Store } from '../../store/port.ts'
import { decodeSecret, encodeSecret, randomPassword } from '../secret-data.ts'
import { selectorOf } from './kubernetes/names.ts'
import type { AdminCredentials } from './runtime.ts'

/** The admin's name on every server; its password is the server's own. */
export const ADMIN_USER = 'mooring'

export const adminSecretName = (server: string): string => `${server}-admin`

/** Code of what {@link AdminSecrets.of} throws when the password of an engine with data is nowhere to be had. */
export const ADMIN_SECRET_LOST = 'admin_secret_lost'

export interface AdminSecretsDeps {
  readonly store: Store
  /** Whether a server that has data takes the password it is given when it starts: then a lost one is replaced. */
  readonly adoptsPassword: boolean
}

/** The admin passwords of the servers, each in a Secret of its server's. */
export interface AdminSecrets {
  /**
   * Drawn once, before the server first starts. A Secret that was deleted or damaged by hand is put back as it was while this process
   * knows what it held; after that another password is drawn, where the engine takes it.
   * @throws MooringError `admin_secret_lost`
   */
  of(server: DatabaseServer): Promise<AdminCredentials>
  /** The server is gone. */
  forget(server: DatabaseServer): void
}

export function createAdminSecrets({ store, adoptsPassword }: AdminSecretsDeps): AdminSecrets {
  /** By uid of the server. */
  const known = new Map<string, AdminCredentials>()

  function replacement(server: DatabaseServer): AdminCredentials {
    const before = known.get(server.metadata.uid)
    if (before) return before
    // An engine that has reported its version has data, with the password of the Secret that was there.
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

/** The admin's credentials of a server that may have none yet. */
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
  /** A damaged one. */
  readonly secret: Secret | undefined
  readonly credentials: AdminCredentials
}

/** @returns what the Secret holds then: of two that make it, both get what the first made */
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
