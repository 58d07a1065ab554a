import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { createApp, createRequestLimiters } from '../../../apiserver/http/app.ts'
import { INSTANCE_LIMITS, type InstanceLimits } from '../../../apiserver/instances/instance-deps.ts'
import { DEFAULT_LIMITS } from '../../../apiserver/http/rate-limit.ts'
import { createMetrics } from '../../../apiserver/http/access-log.ts'
import { servedMotors } from '../../../apiserver/catalog/regions.ts'
import type { Listener } from '../../../apiserver/http/route.ts'
import { catalogRoutes } from '../../../apiserver/catalog/catalog-routes.ts'
import { instanceRoutes } from '../../../apiserver/instances/routes/instances.ts'
import { createScopes } from '../../../apiserver/auth/scope.ts'
import { Namespace } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { labels, namespaceName, type Role } from '../../../crds/names.ts'
import { Plan } from '../../../crds/plan.ts'
import { Region } from '../../../crds/region.ts'
import { CLUSTER_ROLES } from '../../../crds/schema/roles.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { Access } from '../../../store/access.ts'
import { createCache } from '../../../store/cache.ts'
import { createEmbeddedStore } from '../../../store/embedded.ts'
import type { Key, Store } from '../../../store/port.ts'
import { region, REGION_ID } from '../../builders/resources.ts'
import { type InstancePlayer, playOperator } from './instance-player.ts'
import type { InstanceView } from '../../../apiserver/instances/instance-view.ts'

/** Users of the tests, each with one role in one namespace of the organization `acme`. */
export const MEMBERS: Readonly<Record<string, { readonly namespace: string; readonly role: Role }>> = {
  erin: { namespace: 'prod', role: 'editor' },
  vera: { namespace: 'prod', role: 'viewer' },
  olaf: { namespace: 'other', role: 'editor' },
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // Untyped, since the tests use matchers on it.
  readonly body: { readonly msg: string; readonly data?: unknown; readonly error?: { readonly code: string } }
}

export interface CallOptions {
  readonly as?: keyof typeof MEMBERS
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly listener?: Listener
}

export interface InstanceApi extends AsyncDisposable {
  readonly store: Awaited<ReturnType<typeof createEmbeddedStore>>
  readonly operator: InstancePlayer
  /** Waits until the API's cache has an instance that meets a condition. */
  untilInstance(key: Key, wanted: (instance: SharedInstance | undefined) => boolean): Promise<void>
  /** Calls the API: `call('GET /v1/instances')`, by default as erin on the shared listener. */
  call(what: string, options?: CallOptions): Promise<Answer>
}

/** Access by the real rules of roles, over fixed members. */
export const access: Access = {
  async may({ user }, { verb, resource, namespace }) {
    const member = MEMBERS[user]
    if (!member || namespaceName('acme', member.namespace) !== namespace) return false
    const rules = CLUSTER_ROLES.find(({ name }) => name === `mooring-${member.role}`)?.rules ?? []
    return rules.some(({ resources, verbs }) => resources.includes(resource) && verbs.includes(verb))
  },
  async memberships({ user }) {
    const member = MEMBERS[user]
    return member ? [{ organization: 'acme', ...member }] : []
  },
}

/** Settings that a test overrides. */
export interface InstanceApiOptions extends Partial<InstanceLimits> {
  /** Wraps the store that the routes use. */
  readonly between?: (store: Store) => Store
}

/** Starts the express app with the routes of instances and of the catalog, over an EmbeddedStore and a simulated operator. */
export async function startInstanceApi({ between = (store) => store, ...limits }: InstanceApiOptions = {}): Promise<InstanceApi> {
  await using opened = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'mooring-test-'))
  opened.defer(() => rm(dir, { recursive: true }))
  const store = opened.use(await createEmbeddedStore({ path: join(dir, 'state.db') }))
  await seed(store)

  const stop = new AbortController()
  const running = <K extends Kind>(kind: K) => {
    const cache = createCache({ store, kind })
    const ended = cache.run(stop.signal)
    opened.defer(() => ended)
    return cache
  }
  const caches = {
    instances: running(SharedInstance),
    regions: running(Region),
    plans: running(Plan),
    namespaces: running(Namespace),
  }
  opened.defer(() => stop.abort())
  await Promise.all(Object.values(caches).map((cache) => cache.synced()))

  const scopes = createScopes({ access, namespaces: caches.namespaces })
  const now = () => new Date()
  const wiring = {
    ...caches,
    store: between(store),
    access,
    scopes,
    motorsOf: servedMotors,
    instanceLimits: { ...INSTANCE_LIMITS, ...limits },
    now,
  }
  const routes = [...instanceRoutes(wiring), ...catalogRoutes(wiring)]
  const many = { ...DEFAULT_LIMITS, readRate: 10_000, readBurst: 10_001, writeRate: 10_000, writeBurst: 10_001 }
  const metrics = createMetrics()
  opened.defer(() => metrics.close())
  const common = {
    routes,
    metrics,
    log: pino({ level: 'silent' }),
    limiters: createRequestLimiters(many),
    verifyJwt: async (token: string) => ({ user: token, groups: [] }),
    verifyApiToken: async (token: string) => ({ user: token, groups: [] }),
  }
  const urls = { shared: await listen('shared'), dedicated: await listen('dedicated') }

  async function listen(listener: Listener): Promise<string> {
    const server = createApp({ ...common, listener }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    opened.defer(async () => {
      const closed = new Promise((resolve) => server.once('close', resolve))
      server.close()
      server.closeAllConnections()
      await closed
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  async function call(what: string, { as = 'erin', body, headers, listener = 'shared' }: CallOptions = {}): Promise<Answer> {
    const [method = '', path = ''] = what.split(' ')
    const json = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const answer = await fetch(urls[listener] + path, {
      method,
      headers: { Authorization: `Bearer ${as}`, ...json, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Answer['body'] }
  }

  const operator = playOperator(store, caches.instances)
  async function untilInstance(key: Key, wanted: (instance: SharedInstance | undefined) => boolean): Promise<void> {
    await caches.instances.waitFor(key, (instance) => wanted(instance) || undefined, stop.signal)
  }

  const all = opened.move()
  return { store, operator, untilInstance, call, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/** Creates the namespaces `acme/prod` and `acme/other`, and a region with PostgreSQL 14 and 15. */
export async function seed(store: Store): Promise<void> {
  for (const slug of ['prod', 'other']) {
    const metadata = { name: namespaceName('acme', slug), labels: { [labels.organization]: 'acme', [labels.namespace]: slug } }
    await store.create(Namespace, { metadata })
  }
  const { metadata, spec } = region({
    motors: [
      { id: 'postgresql-15.4.0', warm: true },
      { id: 'postgresql-14.4.0', warm: false },
    ],
  })
  await store.create(Region, { metadata: { name: metadata.name }, spec })
}

/** Body that the API of the tests accepts. */
export const instanceBody = { identifier: 'pr-42', region: REGION_ID, motor: 'postgresql-15.4.0' } as const

export const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } })

export const instanceOf = ({ body }: Answer) => (body.data as { instance: InstanceView }).instance

/** Returns all instances in the store. */
export const stored = async ({ store }: InstanceApi) => (await store.list(SharedInstance)).items

/** Creates an instance by POST and expects success. @throws Error with the message of the error response */
export async function expectCreated(api: InstanceApi, body: object = {}): Promise<InstanceView> {
  const answer = await api.call('POST /v1/instances', { body: { ...instanceBody, ...body } })
  if (answer.status !== 201) throw new Error(answer.body.msg)
  return instanceOf(answer)
}
