import { Namespace, Secret } from '../../crds/core.ts'
import { MooringError } from '../../shared/errors.ts'
import { JOURNAL_DATABASE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { JournalLogin } from '../../journal/postgresql.ts'
import { connectionConfig } from '../../journal/postgresql/client.ts'
import type { JournalRoles } from '../../journal/postgresql/owner.ts'
import type { Store } from '../../store/port.ts'
import { decodeSecret } from '../secret-data.ts'
import { type Login, type LoginKeeper, type DatabaseAddress, roleOf } from './logins.ts'
import type { OwnServer } from './own-server.ts'
import { claimOutside, prepareOutside, prepareServer, rightsOf } from './roles.ts'

/** Location of the journal, and the preparation that gives all users their logins. */
export interface JournalLocation {
  /** Identity of the location; changes with any of its parts. */
  readonly key: string
  /** Login of the operator. */
  readonly owner: JournalLogin
  /** Roles of edges and API servers. Undefined where all use the owner's login. */
  readonly roles: JournalRoles | undefined
  /** Creates roles and database. Idempotent. Throws errors of the driver. */
  prepare(): Promise<void>
}

export interface LocationFinderDeps {
  readonly store: Store
  readonly server: OwnServer
  readonly logins: LoginKeeper
  readonly ca: () => string
  readonly outside: string | undefined
}

/**
 * Creates the finder of the journal's location, which also keeps the three Secrets. `find` returns undefined while the server is not ready.
 */
export function createLocationFinder({ store, server, logins, ca, outside }: LocationFinderDeps): {
  find(): Promise<JournalLocation | undefined>
} {
  let admitted: { readonly uri: string; readonly makesRoles: boolean } | undefined

  async function own(): Promise<JournalLocation | undefined> {
    const { host, port } = server
    const address = { host, port, database: JOURNAL_DATABASE, options: '?sslmode=verify-full', ca: ca(), roleOf }
    // Before the server runs: pods that mount the Secrets do not wait for it.
    const made = {
      owner: await logins.keep('owner', address),
      edge: await logins.keep('edge', address),
      reader: await logins.keep('reader', address),
    }
    const admin = (await server.ensure()) ? await server.admin() : undefined
    if (!admin) return undefined
    return {
      key: JSON.stringify([admin, made]),
      owner: dialled(made.owner, { from: host, to: admin.host }),
      roles: rolesOf(made),
      prepare: () => prepareServer(admin, made),
    }
  }

  async function elsewhere(name: string): Promise<JournalLocation> {
    const owner = await givenLogin(store, name)
    const config = connectionConfig(owner)
    const installation = await installationOf(store)
    if (admitted?.uri !== owner.uri) {
      // Users get no login to a database that another installation owns.
      await claimOutside(config, installation)
      admitted = { uri: owner.uri, ...(await rightsOf(config)) }
    }
    await logins.hand('owner', owner)
    if (!admitted.makesRoles) {
      for (const user of ['edge', 'reader'] as const) await logins.hand(user, owner)
      return { key: JSON.stringify(owner), owner, roles: undefined, prepare: () => claimOutside(config, installation) }
    }
    const address = addressIn(owner)
    const made = { edge: await logins.keep('edge', address), reader: await logins.keep('reader', address) }
    return {
      key: JSON.stringify([owner, made]),
      owner,
      roles: rolesOf(made),
      async prepare() {
        await claimOutside(config, installation)
        await prepareOutside(config, made)
      },
    }
  }

  return { find: () => (outside === undefined ? own() : elsewhere(outside)) }
}

/** Login with the host replaced by the address at which the operator dials. */
function dialled({ uri, ca }: Login, { from, to }: { readonly from: string; readonly to: string }): JournalLogin {
  return { uri: uri.replace(`@${from}:`, () => `@${to.includes(':') ? `[${to}]` : to}:`), ca }
}

/** @throws MooringError `journal_secret` */
async function givenLogin(store: Store, name: string): Promise<JournalLogin> {
  const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
  const uri = secret && decodeSecret(secret.data, 'uri')
  if (!secret || uri === undefined || uri === '') {
    throw new MooringError('journal_secret', `the Secret ${name} with the journal's address is missing or has no uri`)
  }
  const ca = decodeSecret(secret.data, 'ca.crt')
  return { uri: uri.trim(), ca: ca === '' ? undefined : ca }
}

function addressIn({ uri, ca = '' }: JournalLogin): DatabaseAddress {
  const { hostname, port, search } = new URL(uri)
  const { database } = connectionConfig({ uri })
  return { host: hostname, port: Number(port || 5_432), database, options: search, ca, roleOf: (user) => roleOf(user, database) }
}

const rolesOf = ({ edge, reader }: Readonly<Record<'edge' | 'reader', Login>>): JournalRoles => ({
  edge: edge.role,
  reader: reader.role,
})

/** Uid of the namespace mooring-system. @throws MooringError `journal_namespace` */
async function installationOf(store: Store): Promise<string> {
  const namespace = await store.get(Namespace, { name: SYSTEM_NAMESPACE })
  if (!namespace) throw new MooringError('journal_namespace', `the namespace ${SYSTEM_NAMESPACE} does not exist`)
  return namespace.metadata.uid
}
