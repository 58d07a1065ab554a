import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createScopes } from '../../../apiserver/auth/scope.ts'
import { catalogRoutes } from '../../../apiserver/catalog/catalog-routes.ts'
import { servedMotors } from '../../../apiserver/catalog/regions.ts'
import type { DatabaseWiring } from '../../../apiserver/databases/database-deps.ts'
import type { DatabaseView } from '../../../apiserver/databases/database-view.ts'
import { databaseRoutes } from '../../../apiserver/databases/routes/databases.ts'
import { DEFAULT_LIMITS } from '../../../apiserver/http/rate-limit.ts'
import { createRequestLimiters } from '../../../apiserver/http/app.ts'
import type { AuditedRequest } from '../../../apiserver/journal/audit.ts'
import { Namespace, Secret } from '../../../crds/core.ts'
import { DatabaseArchive } from '../../../crds/database-archive.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { annotations } from '../../../crds/names.ts'
import { Plan } from '../../../crds/plan.ts'
import { Region } from '../../../crds/region.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { createCacheSet } from '../../../store/cache.ts'
import { createEmbeddedStore } from '../../../store/embedded.ts'
import { isStoreError, type Store } from '../../../store/port.ts'
import { namedPlan, plan, runningStatus } from '../../builders/dedicated.ts'
import { readyCondition, REGION_ID } from '../../builders/resources.ts'
import { access, type MEMBERS, seed } from './instance-api.ts'
import { type Answer, serveRoutes } from './http-app.ts'

export interface DatabaseCall {
  readonly as?: keyof typeof MEMBERS
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface DatabaseApi extends AsyncDisposable {
  readonly store: Store
  /** Audit records so far. */
  readonly recorded: readonly AuditedRequest[]
  /** Calls the API: `call('GET /v1/databases')`, by default as erin, an editor of `acme/prod`. */
  call(what: string, options?: DatabaseCall): Promise<Answer>
  /** Creates a database by POST. @throws Error with the message of an error */
  created(body?: object, options?: DatabaseCall): Promise<DatabaseView>
  /** Reports as the operator does: the database runs, with the password of its spec. Resolves when the API shows it. */
  runs(id: string): Promise<void>
  /** Reports another status of the current generation. Resolves when the API shows it. */
  reports(id: string, status: NonNullable<DedicatedDatabase['status']>, reason: string): Promise<void>
  /** Removes the finalizer as the operator does. Resolves when the API shows that the database is gone. */
  ends(id: string): Promise<void>
  stored(): Promise<readonly DedicatedDatabase[]>
}

const many = { ...DEFAULT_LIMITS, readRate: 10_000, readBurst: 10_001, writeRate: 10_000, writeBurst: 10_001 }
const base64 = (text: string) => Buffer.from(text).toString('base64')

export const databaseBody = { name: 'shop', engine: 'postgresql-15.4.0', region: REGION_ID, plan: 'small' } as const
export const databaseOf = ({ body }: Answer) => (body.data as { database: DatabaseView }).database

/** Plans of the tests. `large` and `older` have more storage than `small`; `older` is for PostgreSQL 14 alone. */
const PLANS = [
  plan(),
  namedPlan('large', { storageGiB: 50, engines: ['postgresql-15.4.0', 'postgresql-14.4.0'] }),
  namedPlan('older', { storageGiB: 20, engines: ['postgresql-14.4.0'] }),
]

interface Options extends Partial<
  Pick<DatabaseWiring, 'databasesPerNamespace' | 'rotationMs' | 'records' | 'now' | 'restoreGrants' | 'withoutBackups'>
> {
  /** Whether the region has an endpoint with edges. Default: it has. */
  readonly endpoint?: boolean
}

/** Serves the routes of dedicated databases and of the catalog on the dedicated listener, over an EmbeddedStore. */
export async function startDatabaseApi({ endpoint = true, ...options }: Options = {}): Promise<DatabaseApi> {
  await using opened = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'mooring-test-'))
  opened.defer(() => rm(dir, { recursive: true }))
  const store = opened.use(await createEmbeddedStore({ path: join(dir, 'state.db') }))
  await seed(store)
  for (const { metadata, spec } of PLANS) await store.create(Plan, { metadata: { name: metadata.name }, spec })

  const edges = { region: REGION_ID, domain: 'tunnel.test', sshHost: 'ssh.test' }
  if (endpoint) await store.create(TunnelEndpoint, { metadata: { name: 'main' }, spec: edges })

  const set = createCacheSet({ store, onError: (error) => expect.fail(String(error)) })
  const { cached } = set
  const caches = {
    ...{ databases: cached(DedicatedDatabase), regions: cached(Region) },
    ...{ plans: cached(Plan), namespaces: cached(Namespace), endpoints: cached(TunnelEndpoint) },
    archives: cached(DatabaseArchive),
  }
  const tunnelPasswords = cached(TunnelPassword)
  const stop = new AbortController()
  const running = set.run(stop.signal)
  opened.defer(() => running)
  opened.defer(() => stop.abort())
  await set.synced()

  const recorded: AuditedRequest[] = []
  const audit = { record: async (request: AuditedRequest) => void recorded.push(request) }
  const scopes = createScopes({ access, namespaces: caches.namespaces })
  const journal = { connections: () => Promise.resolve([]) }
  const tunnels = { tunnelPasswords, tokenSecret: new Uint8Array(32), journal }
  const wiring = {
    ...caches,
    tunnels,
    store,
    access,
    scopes,
    audit,
    motorsOf: servedMotors,
    databasesPerNamespace: 5,
    ...options,
  }
  const app = opened.use(
    await serveRoutes([...databaseRoutes(wiring), ...catalogRoutes(wiring)], {
      listener: 'dedicated',
      limiters: createRequestLimiters(many),
      verifyJwt: async (token: string) => ({ user: token, groups: [] }),
    }),
  )

  const call: DatabaseApi['call'] = (what, { as = 'erin', ...rest } = {}) => {
    const [method = '', path = ''] = what.split(' ')
    return app.call(method, path, { token: as, ...rest })
  }

  async function created(body: object = {}, options: DatabaseCall = {}): Promise<DatabaseView> {
    const answer = await call('POST /v1/databases', { body: { ...databaseBody, ...body }, ...options })
    if (answer.status !== 201) throw new Error(answer.body.msg)
    return databaseOf(answer)
  }

  const stored = async () => (await store.list(DedicatedDatabase)).items

  async function find(id: string): Promise<DedicatedDatabase> {
    const found = (await stored()).find(({ metadata }) => metadata.uid === id)
    if (!found) throw new Error(`the store has no database ${id}`)
    return found
  }

  const reports: DatabaseApi['reports'] = async (id, status, reason) => {
    const { metadata } = await find(id)
    const isTrue = status.phase === 'running'
    const conditions = [readyCondition(isTrue ? 'True' : 'False', reason, metadata.generation)]
    const now = await store.patchStatus(DedicatedDatabase, metadata, { ...status, conditions })
    const isSeen = (seen: DedicatedDatabase | undefined) => seen?.metadata.resourceVersion === now.metadata.resourceVersion
    await caches.databases.waitFor(metadata, (seen) => isSeen(seen) || undefined, stop.signal)
  }

  async function runs(id: string): Promise<void> {
    const { metadata, spec } = await find(id)
    const { passwordVersion, plan } = spec
    const passwordId = `id-${passwordVersion}`
    await keepSecret(store, metadata, { password: `password-${passwordVersion}`, passwordVersion, passwordId })
    const at = {
      engineVersion: '15.4',
      internalHost: 'db.mooring-shared.svc',
      secretRef: { name: `${metadata.name}-credentials` },
    }
    await reports(id, { ...runningStatus, ...at, passwordVersion, passwordId, plan }, 'Running')
  }

  async function ends(id: string): Promise<void> {
    const { metadata } = await find(id)
    await store.mergePatch(DedicatedDatabase, metadata, { metadata: { finalizers: [] } })
    await caches.databases.waitFor(metadata, (seen) => seen?.metadata.uid !== id || undefined, stop.signal)
  }

  const all = opened.move()
  return { store, recorded, call, created, runs, reports, ends, stored, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

async function keepSecret(
  store: Store,
  { name, namespace = '' }: DedicatedDatabase['metadata'],
  { password, passwordVersion, passwordId }: { password: string; passwordVersion: number; passwordId: string },
): Promise<void> {
  const key = { namespace, name: `${name}-credentials` }
  const notes = { [annotations.passwordVersion]: `${passwordVersion}`, [annotations.passwordId]: passwordId }
  const texts = {
    ...{ host: 'db.example.com', port: '5432', username: 'u', password, database: 'n', 'ca.crt': 'PEM' },
    uri: `postgresql://u:${password}@db.example.com:5432/n`,
  }
  const data = Object.fromEntries(Object.entries(texts).map(([field, text]) => [field, base64(text)]))
  try {
    await store.create(Secret, { metadata: { ...key, annotations: notes }, type: 'Opaque', data })
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    await store.mergePatch(Secret, key, { metadata: { annotations: notes }, data })
  }
}
