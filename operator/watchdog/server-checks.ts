import type { Logger } from 'pino'
import { type Registry, Gauge } from 'prom-client'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { InstanceReason, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf, ready, withCondition, withoutCondition } from '../../store/conditions.ts'
import { keyOf, type Store } from '../../store/port.ts'
import type { OpenServer } from '../server/admins.ts'
import { type Credentials, checkSecret, MANAGED_BY } from '../shared-instance/kept-secret.ts'
import { instanceNamed } from '../shared-instance/indexes.ts'
import type { Suspicions } from '../shared-instance/slots.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { ServerReason, TRANSACTION_IDS_LOW } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE, labels } from '../../crds/names.ts'
import { Secret } from '../../crds/core.ts'
import { secretName } from '../shared-instance/credentials.ts'
import { writeConditions } from './server-conditions.ts'

export interface SizesDeps {
  /** Instances, with the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  readonly suspicions: Pick<Suspicions, 'oversize'>
  readonly sizeBytes: number
  readonly log: Pick<Logger, 'info'>
  /** Called with an instance whose database grew above its size limit, or shrank below it. */
  readonly wake: (instance: SharedInstance) => void
}

/** Measures the databases of one server, all or only those that can grow now, and marks the instances above their size limit. */
type CheckSizes = (server: string, open: OpenServer, which: 'all' | 'busy') => Promise<void>

export function createSizeCheck({ instances, suspicions, sizeBytes, log, wake }: SizesDeps): CheckSizes {
  return async function checkSizes(server, { admin }, which) {
    const resets = new Map(instances.byIndex('server', server).map(({ metadata, status }) => [metadata.uid, resetsOf(status)]))
    for (const [name, bytes] of await admin.sizes(which)) {
      const owner = instanceNamed(instances, name)
      if (!owner || isBeingReset(owner, resets)) continue
      const { uid } = owner.metadata
      const isOversize = bytes > sizeBytes
      // Ending a session drops what it wrote in an open transaction: only a check of all databases clears the mark.
      if (!isOversize && which === 'busy') continue
      if (isOversize === suspicions.oversize.has(uid)) continue
      if (isOversize) suspicions.oversize.add(uid)
      else suspicions.oversize.delete(uid)
      log.info({ server, instance: keyOf(owner), bytes, isOversize }, 'database crossed its size limit')
      wake(owner)
    }
  }
}

/** Whether the database is being reset: the size of the former database would disable the new one. */
function isBeingReset(instance: SharedInstance, resets: ReadonlyMap<string, number>): boolean {
  const { metadata, spec, status } = instance
  return spec.resetVersion > (resets.get(metadata.uid) ?? resetsOf(status)) && !waitsToReset(instance)
}

const resetsOf = (status: SharedInstance['status']): number => status?.resetVersion ?? 0

const WAITS_FOR_TEMPLATE: ReadonlySet<string> = new Set([
  ...[InstanceReason.TemplateNotFound, InstanceReason.TemplateInUse, InstanceReason.TemplateNotCopyable],
])

/** Whether a requested reset waits until its template can be copied: the database keeps its size meanwhile. */
function waitsToReset(instance: SharedInstance): boolean {
  const reason = conditionOf(instance, 'Ready')?.reason
  return reason !== undefined && WAITS_FOR_TEMPLATE.has(reason) && instance.spec.resetVersion > resetsOf(instance.status)
}

export interface TransactionIdsDeps {
  readonly store: Store
  readonly servers: Cache<typeof DatabaseServer>
  readonly registry: Registry
  readonly now: () => Date
}

/** Used share of the transaction ids at which the condition is set, and below which it is removed. */
const LOW = 0.5
const ENOUGH = 0.4

/**
 * Creates the reporter of each server's used transaction ids: a gauge and, above half, a condition of the DatabaseServer, which becomes an
 * Event. Half is days before the server stops, even with a tenant that uses them as fast as possible.
 */
export function createTransactionIdAlarm({ store, servers, registry, now }: TransactionIdsDeps) {
  const byServer = new Map<string, number>()
  new Gauge({
    name: 'mooring_database_transaction_ids_used_ratio',
    help: 'Highest share of its transaction ids that a database server has used; a server stops at 1.',
    registers: [registry],
    collect() {
      this.set(Math.max(0, ...byServer.values()))
    },
  })

  return async function onTransactionIds(name: string, used: number): Promise<void> {
    const server = servers.get({ namespace: SHARED_NAMESPACE, name })
    if (!server) {
      byServer.delete(name)
      return
    }
    byServer.set(name, used)
    const isSet = conditionOf(server, TRANSACTION_IDS_LOW) !== undefined
    if (used >= LOW === isSet || (isSet && used >= ENOUGH)) return
    const message = `${Math.round(used * 100)} % of the transaction ids are used up: end sessions that keep old tables locked, and vacuum`
    const stamp = { type: TRANSACTION_IDS_LOW, generation: server.metadata.generation, now: now() }
    const before = server.status?.conditions
    const conditions = isSet
      ? withoutCondition(before, TRANSACTION_IDS_LOW)
      : withCondition(before, ready(ServerReason.Wraparound, message), stamp)
    // The next sweep sets the condition of a server that has changed meanwhile.
    await writeConditions(store, server, conditions)
  }
}

/** Resource with a credential Secret. */
export type Owner = SharedInstance | DedicatedDatabase

export interface SecretSearch {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  readonly databases: Cache<typeof DedicatedDatabase>
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  /** Receives the error of a namespace whose Secrets cannot be read. */
  readonly onError: (namespace: string, error: unknown) => void
}

/** Owner and the content of its Secret; undefined when the Secret is missing or changed. */
export interface KeptCredentials {
  readonly owner: Owner
  readonly credentials: Credentials | undefined
}

/**
 * Reads the credential Secrets of all claimed instances and databases. Secrets are not watched, as that needs permission to read all Secrets of the
 * cluster: they are listed by namespace, and only where there are instances.
 */
export async function readSecrets(search: SecretSearch): Promise<readonly KeptCredentials[]> {
  const owners: readonly Owner[] = [...search.instances.list(), ...search.databases.list()]
  const byNamespace = Map.groupBy(owners.filter(isClaimed), ({ metadata }) => metadata.namespace ?? '')
  const found: KeptCredentials[] = []
  for (const [namespace, claimed] of byNamespace) {
    try {
      found.push(...(await readNamespace(search, namespace, claimed)))
    } catch (error) {
      search.onError(namespace, error)
    }
  }
  return found
}

/** Whether an owner has been claimed. Others, and those being deleted, are handled by their reconciler. */
function isClaimed({ metadata, status }: Owner): boolean {
  return status?.secretRef !== undefined && metadata.deletionTimestamp === undefined
}

async function readNamespace({ store, ca }: SecretSearch, namespace: string, claimed: readonly Owner[]) {
  const { items } = await store.list(Secret, { namespace, labels: { [labels.managedBy]: MANAGED_BY } })
  const secrets = new Map(items.map((secret) => [secret.metadata.name, secret]))
  return claimed.map((owner) => {
    const secret = secrets.get(secretName(owner))
    const found = secret && checkSecret(secret, { owner, ca: ca() })
    return { owner, credentials: typeof found === 'object' && isUnchanged(found, owner) ? found : undefined }
  })
}

/** Whether a Secret is as the operator wrote it. A password of the version in force must be the one that the status names. */
function isUnchanged({ tidy, passwordVersion, passwordId }: Credentials, { status }: Owner): boolean {
  return tidy && (passwordVersion !== status?.passwordVersion || passwordId === status.passwordId)
}
