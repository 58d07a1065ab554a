import { Namespace, Secret } from '../../crds/core.ts'
import { MooringError } from '../../shared/errors.ts'
import { JOURNAL_DATABASE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { JournalLogin } from '../../journal/postgresql.ts'
import { connectionConfig } from '../../journal/postgresql/login.ts'
import type { JournalRoles } from '../../journal/postgresql/owner.ts'
import type { Store } from '../../store/port.ts'
import { decodeSecret } from '../secret-data.ts'
import { type Login, type LoginKeeper, type Place, roleOf } from './logins.ts'
import type { OwnServer } from './own-server.ts'
import { claimOutside, prepareOutside, prepareServer, rightsOf } from './roles.ts'

/** Where the journal is, and what it takes to let everybody in. */
export interface JournalPlace {
  /** Changes when anything of it does. */
  readonly key: string
  /** As the operator logs in. */
  readonly owner: JournalLogin
  /** Undefined where all use the owner's login. */
  readonly roles: JournalRoles | undefined
  /** Makes roles and database. Any number of times. Throws what the driver throws. */
  prepare(): Promise<void>
}

export interface PlaceKeeperDeps {
  readonly store: Store
  readonly server: OwnServer
  readonly logins: LoginKeeper
  readonly ca: () => string
  readonly outside: string | undefined
}

/** Finds the journal's place and keeps the three Secrets. Undefined from `find` while the server is not there yet. */
export function createPlaceKeeper({ store, server, logins, ca, outside }: PlaceKeeperDeps): {
  find(): Promise<JournalPlace | undefined>
} {
  let admitted: { readonly uri: string; readonly makesRoles: boolean } | undefined

  async function own(): Promise<JournalPlace | undefined> {
    const { host, port } = server
    const place = { host, port, database: JOURNAL_DATABASE, options: '?sslmode=verify-full', ca: ca(), roleOf }
    // Before the server is there: pods that mount them need not wait for it.
    const made = {
      owner: await logins.keep('owner', place),
      edge: await logins.keep('edge', place),
      reader: await logins.keep('reader', place),
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

  async function elsewhere(name: string): Promise<JournalPlace> {
    const owner = await givenLogin(store, name)
    const config = connectionConfig(owner)
    const installation = await installationOf(store)
    if (admitted?.uri !== owner.uri) {
      // Nobody is handed a login to what is another installation's.
      await claimOutside(config, installation)
      admitted = { uri: owner.uri, ...(await rightsOf(config)) }
    }
    await logins.hand('owner', owner)
    if (!admitted.makesRoles) {
      for (const user of ['edge', 'reader'] as const) await logins.hand(user, owner)
      return { key: JSON.stringify(owner), owner, roles: undefined, prepare: () => claimOutside(config, installation) }
    }
    const place = placeIn(owner)
    const made = { edge: await logins.keep('edge', place), reader: await logins.keep('reader', place) }
    return {
      ...{ key: JSON.stringify([owner, made]), owner, roles: rolesOf(made) },
      async prepare() {
        await claimOutside(config, installation)
        await prepareOutside(config, made)
      },
    }
  }

  return { find: () => (outside === undefined ? own() : elsewhere(outside)) }
}

/** The same login, at the address by which the operator itself dials. */
function dialled({ uri, ca }: Login, { from, to }: { readonly from: string; readonly to: string }): JournalLogin {
  return { uri: uri.replace(`@${from}:`, () => `@${to.includes(':') ? `[${to}]` : to}:`), ca }
}

/** @throws MooringError `journal_secret` */
async function givenLogin(store: Store, name: string): Promise<JournalLogin> {
  const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
  const uri = secret && decodeSecret(secret.data, 'uri')
  if (!secret || uri === undefined || uri === '') {
    throw new MooringError('journal_secret', `the Secret ${name} with the journal's address is not there, or has no uri`)
  }
  const ca = decodeSecret(secret.data, 'ca.crt')
  return { uri: uri.trim(), ca: ca === '' ? undefined : ca }
}

function placeIn({ uri, ca = '' }: JournalLogin): Place {
  const { hostname, port, search } = new URL(uri)
  const { database } = connectionConfig({ uri })
  return { host: hostname, port: Number(port || 5_432), database, options: search, ca, roleOf: (user) => roleOf(user, database) }
}

const rolesOf = ({ edge, reader }: Readonly<Record<'edge' | 'reader', Login>>): JournalRoles => ({
  edge: edge.role,
  reader: reader.role,
})

/** uid of mooring-system. @throws MooringError `journal_namespace` */
async function installationOf(store: Store): Promise<string> {
  const namespace = await store.get(Namespace, { name: SYSTEM_NAMESPACE })
  if (!namespace) throw new MooringError('journal_namespace', `the namespace ${SYSTEM_NAMESPACE} is not there`)
  return namespace.metadata.uid
}
