import { randomBytes } from 'node:crypto'
import { ClusterRoleBinding, Namespace } from '../crds/core.ts'
import type { Draft, Kind, Resource } from '../crds/kind.ts'
import type { Motor } from '../crds/motor.ts'
import {
  FINALIZER,
  namespaceName,
  PLATFORM_ADMIN_GROUP,
  PLATFORM_ADMIN_ROLE,
  SHARED_NAMESPACE,
  SYSTEM_NAMESPACE,
} from '../crds/names.ts'
import { Organization } from '../crds/organization.ts'
import { Region } from '../crds/region.ts'
import { TenantNamespace } from '../crds/tenant-namespace.ts'
import { isStoreError, type Store } from '../store/port.ts'
import type { KeyPair } from '../operator/certificates/local-ca.ts'
import { openCa } from '../operator/installation/ca.ts'
import { keptSecret } from '../operator/installation/kept-secret.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import type { Operator } from '../operator/operator.ts'
import { conditionOf, isReady } from '../store/conditions.ts'
import { ensurePlans } from './default-plans.ts'

/** Slug of the organization and of the namespace that embedded mode creates (docs/install.md). */
const DEFAULT = 'default'
/** Object name of this namespace, the home namespace of the printed token. */
const HOME_NAMESPACE = namespaceName(DEFAULT, DEFAULT)
const REGION = 'local'
const TOKEN_SECRET_BYTES = 32

/** Parts of an installation that other modules need. */
export interface Installation {
  readonly ca: KeyPair
  readonly tokenSecret: Uint8Array
  readonly region: Region
}

/** Motors of the installation. */
export interface InstalledMotors {
  readonly served: readonly Motor[]
  /** Motors whose server runs before the first request. */
  readonly warm: readonly Motor[]
}

/**
 * Creates the objects of an embedded installation, or finds them. Each is created on its own, so that an interrupted first start
 * can be continued.
 */
export async function openInstallation(store: Store, motors: InstalledMotors): Promise<Installation> {
  for (const name of [SYSTEM_NAMESPACE, SHARED_NAMESPACE]) await ensure(store, Namespace, { metadata: { name } })
  await ensure(store, Organization, { metadata: { name: DEFAULT }, spec: { name: 'Default' } })
  await ensure(store, TenantNamespace, {
    metadata: { name: HOME_NAMESPACE, finalizers: [FINALIZER] },
    spec: { organization: DEFAULT, namespace: DEFAULT, displayName: 'Default' },
  })
  await ensure(store, ClusterRoleBinding, {
    metadata: { name: 'mooring-platform-admins' },
    roleRef: { apiGroup: ClusterRoleBinding.group, kind: 'ClusterRole', name: PLATFORM_ADMIN_ROLE },
    subjects: [{ kind: 'Group', apiGroup: ClusterRoleBinding.group, name: PLATFORM_ADMIN_GROUP }],
  })
  const region = await openRegion(store, motors)
  await ensurePlans(store)
  const ca = await openCa(store)
  const { secret = '' } = await keptSecret(store, 'mooring-api-tokens', async () => ({
    secret: randomBytes(TOKEN_SECRET_BYTES).toString('hex'),
  }))
  return { ca, tokenSecret: Buffer.from(secret, 'hex'), region }
}

/** Creates the region, and updates its motors at each start from the installed binaries. */
async function openRegion(store: Store, { served, warm }: InstalledMotors): Promise<Region> {
  const motors = served.map((id) => ({ id, warm: warm.includes(id) }))
  await ensure(store, Region, {
    metadata: { name: REGION },
    spec: { id: crypto.randomUUID(), regionId: 1, name: REGION, motors },
  })
  return store.mergePatch(Region, { name: REGION }, { spec: { motors } })
}

async function ensure<K extends Kind>(store: Store, kind: K, draft: Draft<K>): Promise<Resource<K> | undefined> {
  try {
    return await store.create(kind, draft)
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    return undefined
  }
}

/** Maximum wait in milliseconds: a start takes at most one minute. */
const WARM_MS = 45_000

/**
 * Waits for a database server, so that the first request finds one, but at most `ms` milliseconds: crash recovery may take many
 * minutes, and a failed start would begin it again.
 * @returns whether a server is up
 * @throws the signal's reason when it aborts
 */
export async function warm(
  { servers, firstServer }: Pick<OperatorCaches, 'servers'> & Pick<Operator, 'firstServer'>,
  signal: AbortSignal,
  ms = WARM_MS,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let up = false
  const check = () => {
    // A status may date from before the last stop.
    if (up && servers.list().some((server) => server.spec.tenancy === 'shared' && isReady(server))) resolve(true)
  }
  const giveUp = () => resolve(false)
  const unsubscribe = servers.onChange(check)
  const timer = setTimeout(giveUp, ms)
  signal.addEventListener('abort', giveUp)
  void firstServer.then(() => {
    up = true
    check()
  })
  if (signal.aborted) giveUp()
  const isUp = await promise
  clearTimeout(timer)
  unsubscribe()
  signal.removeEventListener('abort', giveUp)
  signal.throwIfAborted()
  return isUp
}

/**
 * Waits until the operator has reconciled the home namespace. It does not wait for Ready, which a namespace under deletion never
 * reaches.
 */
export async function homeReconciled({ tenantNamespaces }: OperatorCaches, signal: AbortSignal): Promise<void> {
  const check = (home: TenantNamespace | undefined) =>
    home?.metadata.deletionTimestamp !== undefined ? true : home && conditionOf(home, 'Ready') && true
  await tenantNamespaces.waitFor({ name: HOME_NAMESPACE }, check, signal)
}
