import { type UninstallDeps, countOf, inWords, listed, VALUED_KINDS } from './inventory.ts'
import { ApiToken } from '../../crds/api-token.ts'
import { Lease, Namespace, Secret } from '../../crds/core.ts'
import { DatabaseArchive } from '../../crds/database-archive.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { MooringError } from '../../shared/errors.ts'
import type { Kind } from '../../crds/kind.ts'
import { annotations, SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { Plan } from '../../crds/plan.ts'
import { Region } from '../../crds/region.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { TenantNamespace } from '../../crds/tenant-namespace.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { pause, systemClock } from '../../shared/timers.ts'
import { ignoringGone, keyOf, type Key, type Store } from '../../store/port.ts'
import { deleteHostKeys, scaleDeployment, stopDeployment, edgeSecrets, edgesGone } from './deployments.ts'
import { CUSTOM_KINDS } from '../../crds/index.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'

const RETRY_MS = 500
/** Time after which the finalizer of a remaining object is removed without its server, which is deleted next. */
const PATIENCE_MS = 20_000
/**
 * Time after which the finalizer of remaining backups is removed. Their removal takes longer; it never ends while the repository is unavailable, or
 * is not in the settings any more.
 */
const BACKUPS_PATIENCE_MS = 150_000

/** Order of deletion: contents before their container. Regions precede servers, which would otherwise be recreated. */
const STAGES: readonly (readonly Kind[])[] = [
  [SharedInstance, DedicatedDatabase, ApiToken, Tunnel, TunnelPassword, TunnelWebhook],
  // A database takes its backups along, but for those that are kept.
  [TenantNamespace, DatabaseArchive],
  [Organization, Region, Plan, TunnelEndpoint],
  [DatabaseServer],
]
const SECRETS = ['mooring-ca', 'mooring-issuer', 'mooring-apiserver', 'journal-edge', 'journal-reader', 'journal-owner']
const LEASE = { namespace: SYSTEM_NAMESPACE, name: 'mooring-operator' }

/** Permission to delete, and the release that a rejection names. */
export interface Leave {
  readonly deleteData: boolean
  /** Revision of the release that is being uninstalled. */
  readonly revision: number
}

/**
 * Removes all that Mooring created beside the chart's own objects: databases and their volumes, tenants' namespaces, keys and the lease.
 * The operator does the work, so it must be running; it is stopped at the end. Without permission to delete tenants' data, nothing is
 * deleted if there is any. Data created during this check is found when the API server has stopped, which is then started again.
 * @throws MooringError `data_exists` when there is tenants' data and no permission to delete it; nothing was deleted then
 */
export async function removeData(deps: UninstallDeps, leave: Leave): Promise<void> {
  const { store, log } = deps
  const mayDelete = leave.deleteData || (await isMarked(store))
  const there = await valued(store)
  if (there !== undefined && !mayDelete) throw refusal(there, leave)
  log.info({ there: there ?? 'nothing' }, 'deleting all data')
  const replicas = await stopDeployment(deps, 'apiserver')
  const since = mayDelete ? undefined : await valued(store)
  if (since !== undefined) {
    await scaleDeployment(store.client, 'apiserver', replicas)
    throw refusal(since, leave)
  }
  const ofEdges = edgeSecrets(await listed(store, TunnelEndpoint))
  const stages = STAGES.map((kinds) => kinds.filter((kind) => mayDelete || !VALUED_KINDS.includes(kind)))
  for (const kinds of stages) await Promise.all(kinds.map((kind) => removeAll(deps, kind)))
  await edgesGone(deps)
  await stopDeployment(deps, 'operator')
  for (const name of [...SECRETS, ...ofEdges]) await remove(store, Secret, { namespace: SYSTEM_NAMESPACE, name })
  await deleteHostKeys(store.client)
  await remove(store, Lease, LEASE)
  log.info({}, 'all data is deleted')
}

/** Whether an annotation permits the deletion: helm cannot upgrade a release whose uninstallation was rejected, to pass another value. */
async function isMarked(store: Store): Promise<boolean> {
  const namespace = await store.get(Namespace, { name: SHARED_NAMESPACE })
  return namespace?.metadata.annotations?.[annotations.deleteData] === 'true'
}

const valued = async (store: Store): Promise<string | undefined> => inWords(await countOf(store, VALUED_KINDS))

function refusal(there: string, { revision }: Leave): MooringError {
  const mark = `kubectl annotate namespace ${SHARED_NAMESPACE} ${annotations.deleteData}=true`
  return new MooringError(
    'data_exists',
    `nothing was done: there are ${there}, which uninstalling deletes with all data. ` +
      `To delete them: ${mark}, then helm uninstall again. To keep them: helm rollback mooring ${revision} -n ${SYSTEM_NAMESPACE}, ` +
      'or, should that revision have failed, the last one in helm history that did not',
  )
}

/** Deletes every object of a kind, including those created meanwhile, and waits until their finalizers are done. */
async function removeAll(deps: UninstallDeps, kind: Kind): Promise<void> {
  const { store, log, clock = systemClock } = deps
  const began = clock.now()
  const never = new AbortController().signal
  for (;;) {
    const objects = await listed(store, kind)
    if (objects.length === 0) return
    for (const object of objects) {
      if (object.metadata.deletionTimestamp === undefined) await remove(store, kind, keyOf(object))
      else if (clock.now() - began > patienceFor(kind)) await letGo(deps, kind, keyOf(object))
    }
    log.info({ left: objects.length, kind: kind.kind }, 'waiting until objects are cleaned up')
    await pause(clock, RETRY_MS, never)
  }
}

async function remove(store: Store, kind: Kind, key: Key): Promise<void> {
  await ignoringGone(store.delete(kind, key))
}

const patienceFor = ({ kind }: Kind): number => (kind === DatabaseArchive.kind ? BACKUPS_PATIENCE_MS : PATIENCE_MS)

async function letGo({ store, log }: UninstallDeps, kind: Kind, key: Key): Promise<void> {
  if (kind.kind === DatabaseArchive.kind) {
    log.info({ archive: key.name }, 'the repository cannot be reached: backups stay in it')
    await ignoringGone(store.mergePatch(kind, key, { metadata: { finalizers: null } }))
    return
  }
  if (kind.kind !== SharedInstance.kind && kind.kind !== DedicatedDatabase.kind) return
  await ignoringGone(store.mergePatch(kind, key, { metadata: { annotations: { [annotations.forceDelete]: 'true' } } }))
}

const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const CRD = { kind: { kind: 'CustomResourceDefinition', plural: 'customresourcedefinitions', custom: false } }

/** Removes the CustomResourceDefinitions, which helm keeps, unless objects of theirs exist, which would be deleted with them. */
export async function removeDefinitions({ store, log }: UninstallDeps): Promise<void> {
  const there = inWords(await countOf(store, CUSTOM_KINDS))
  if (there !== undefined) {
    log.info({ there }, 'the CustomResourceDefinitions are kept: objects of them exist')
    return
  }
  for (const { plural, group } of CUSTOM_KINDS) {
    const name = `${plural}.${group}`
    const request = { method: 'DELETE', path: `${PATH}/${name}`, idempotent: true } as const
    const answer = await store.client.request(request)
    if (answer.status >= 300 && answer.status !== 404) throw storeErrorOf(answer, { ...CRD, name, request })
  }
  log.info({}, 'the CustomResourceDefinitions are deleted')
}
