import { pino } from 'pino'
import { Registry } from 'prom-client'
import { Namespace, Secret } from '../../../crds/core.ts'
import { FINALIZER, labels, SHARED_NAMESPACE } from '../../../crds/names.ts'
import type { Motor } from '../../../crds/motor.ts'
import { Region } from '../../../crds/region.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { createOperatorCaches, type OperatorCaches } from '../../../operator/caches.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { serverName } from '../../../operator/fleet/plan.ts'
import { createOperator, type OperatorSettings } from '../../../operator/operator.ts'
import { decodeSecret, encodeSecret } from '../../../operator/secret-data.ts'
import { adminSecretName } from '../../../operator/server/credentials.ts'
import type { ServerRuntime } from '../../../operator/server/runtime.ts'
import { secretName } from '../../../operator/shared-instance/credentials.ts'
import { type Cache, createCacheSet } from '../../../store/cache.ts'
import { openTemporaryStore } from '../store/temporary-store.ts'
import type { Store } from '../../../store/port.ts'
import { REGION_ID } from '../../builders/resources.ts'

const MOTOR: Motor = 'postgresql-15.4.0'
export const NAMESPACE = 'acme--prod'

/** Whole operator over a real store and one existing database server. */
export interface RunningOperator extends AsyncDisposable {
  /** Store as clients use it, without a wrapper. */
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  readonly caches: OperatorCaches
  /** Creates a SharedInstance. */
  create(name: string, spec?: Partial<SharedInstance['spec']>): Promise<SharedInstance>
  /** Waits until the cache has an object that meets a condition. */
  untilInstance(name: string, wanted: (instance: SharedInstance | undefined) => boolean): Promise<void>
  /** Returns name and password of an instance from its Secret. */
  credentialsOf(name: string): Promise<{ readonly user: string; readonly password: string; readonly database: string }>
}

export interface OperatorOptions {
  readonly target: AdminTarget
  /** Wraps the store that the operator uses. */
  readonly wrap?: (store: Store) => Store
  readonly settings?: Partial<OperatorSettings>
  /** Replaces the runtime, which by default reports the server at `target` for each server. */
  readonly runtime?: ServerRuntime
  /** Store that outlives the operator, for the next one. */
  readonly over?: Store
  /** Motor of the server at `target`, and of instances. Default: PostgreSQL 15. */
  readonly motor?: Motor
  /** Motors of the region. Default: `motor`, warm. */
  readonly motors?: Region['spec']['motors']
}

/** Limits that no test reaches by accident. */
export const LIMITS = { statementMs: 300_000, idleTransactionMs: 300_000, sizeBytes: 2 ** 40 }

const DEFAULTS: OperatorSettings = {
  warmPool: 2,
  capacityOf: () => 50,
  quotas: { instances: 50, databases: 5, tunnels: 50 },
  limits: LIMITS,
  every: { sessionsMs: 60_000, sweepMs: 60_000 },
}

export async function startOperator(options: OperatorOptions): Promise<RunningOperator> {
  const { target, wrap = (store: Store) => store, settings, motor = MOTOR, runtime = runtimeAt(target, motor) } = options
  await using opened = new AsyncDisposableStack()
  const store = options.over ?? opened.use(await openTemporaryStore()).store
  if (!(await store.get(Namespace, { name: SHARED_NAMESPACE }))) await furnish(store, options)
  const seen = wrap(store)
  const set = createCacheSet({ store: seen, onError: () => undefined })
  const caches = createOperatorCaches(set)
  const operator = createOperator({
    ...{ store: seen, caches, runtime, registry: new Registry(), log: pino({ level: 'silent' }) },
    ca: () => '',
    caFile: 'ca.crt',
    serviceAccounts: false,
    settings: { ...DEFAULTS, ...settings },
  })
  const stop = new AbortController()
  const work = Promise.all([set.run(stop.signal), operator.run(stop.signal)])
  await set.synced()
  const kept = opened.move()

  return {
    store,
    instances: caches.instances,
    caches,
    create: (name, spec) =>
      store.create(SharedInstance, {
        metadata: { namespace: NAMESPACE, name, finalizers: [FINALIZER] },
        spec: { identifier: name, region: REGION_ID, motor, ...spec },
      }),
    async untilInstance(name, wanted) {
      const look = (instance: SharedInstance | undefined) => (wanted(instance) ? { done: true } : undefined)
      await caches.instances.waitFor({ namespace: NAMESPACE, name }, look, stop.signal)
    },
    async credentialsOf(name) {
      const instance = caches.instances.get({ namespace: NAMESPACE, name })
      const secret = instance && (await store.get(Secret, { namespace: NAMESPACE, name: secretName(instance) }))
      const [user = '', password = ''] = ['username', 'password'].map((key) => decodeSecret(secret?.data ?? {}, key))
      return { user, password, database: user }
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await work
      await kept.disposeAsync()
    },
  }
}

/** Creates the initial objects of an installation, and the admin password of the server that the operator will create. */
async function furnish(
  store: Store,
  { target, motor = MOTOR, motors = [{ id: motor, warm: true }] }: OperatorOptions,
): Promise<void> {
  const { user, password } = target
  const tenant = { [labels.organization]: 'acme', [labels.namespace]: 'prod' }
  await store.create(Namespace, { metadata: { name: NAMESPACE, labels: tenant } })
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  await store.create(Secret, {
    metadata: { namespace: SHARED_NAMESPACE, name: adminSecretName(serverName(motor, 1, 1)) },
    data: encodeSecret({ username: user, password }),
  })
  await store.create(Region, {
    metadata: { name: 'local' },
    spec: { id: REGION_ID, regionId: 1, name: 'local', motors },
  })
}

/** Creates a runtime in which every server is the one at `target`. */
export function runtimeAt({ host, port }: AdminTarget, motor: Motor = MOTOR): ServerRuntime {
  return {
    motors: () => Promise.resolve(new Map([[motor, { version: '15.4.0' }]])),
    ensure: () => Promise.resolve({ phase: 'running', host, port, admin: { host, port } }),
    remove: () => Promise.resolve(true),
    restart: () => Promise.resolve(),
    onChange: () => undefined,
    close: () => Promise.resolve(),
  }
}
