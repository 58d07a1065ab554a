import type { DatabaseArchive } from '../../crds/database-archive.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import type { Plan as CatalogPlan } from '../../crds/plan.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { MooringError } from '../../shared/errors.ts'
import type { Cache } from '../../store/cache.ts'
import { ignoringGone, isStoreError, keyOf, keyToString, type Store, StoreCode, StoreError } from '../../store/port.ts'
import { EngineCode, type EngineAdmin, type InstalledExtensions } from '../engines/engine.ts'
import { connectionsOf } from '../engines/size.ts'
import { stepDone } from '../reporter.ts'
import type { Events } from '../events/events.ts'
import type { OpenServer } from '../server/admins.ts'
import {
  type Address,
  createCredentials,
  deleteCredentials,
  freshCredentials,
  passwordReplaced,
  updateCredentials,
} from '../shared-instance/credentials.ts'
import type { Credentials } from '../shared-instance/kept-secret.ts'
import type { Suspicions } from '../shared-instance/slots.ts'
import { applyToArchive, isOfArchive } from './apply-archive.ts'
import type { ArchiveAction } from './backups.ts'
import { installExtensions } from './extensions.ts'
import type { Observation } from './observe.ts'
import type { Action, Plan } from './plan.ts'
import { patchOf, serverOf, type ServerShape, type Size } from './resources.ts'
import { assignHostname, type SshTunnelDeps } from './ssh-tunnel.ts'
import { type PeriodsDeps, plannedPeriods } from './usage-periods.ts'

export interface ApplyDeps extends PeriodsDeps {
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  /** File name of that CA in connection strings. */
  readonly caFile: string
  readonly suspicions: Pick<Suspicions, 'password' | 'extensions'>
  /** Receives what happened to the database that no condition says. */
  readonly events: Events
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly edges?: SshTunnelDeps | undefined
  /** Records the use of a database that is being deleted. Absent in an installation without a journal. */
  readonly finishUsage?: ((database: DedicatedDatabase) => Promise<void>) | undefined
  /** Whether this process may act now. Default: always. Needed because engines do not check the leader lease (shared-instance/apply.ts). */
  readonly mayAct?: (() => boolean) | undefined
}

/** Code of the error of a deletion whose usage could not be recorded. */
export const USAGE_UNRECORDED = 'usage_unrecorded'

/** State after the actions: the database as last written, its server and its credentials. */
export interface Applied {
  readonly database: DedicatedDatabase
  readonly server: DatabaseServer | undefined
  readonly credentials: Credentials | undefined
  /** Result of the action `extensions`. */
  readonly extensions?: InstalledExtensions | undefined
}

/** Carries out a plan's actions in order. Announces each when it is done (operator/reporter.ts). @returns the resulting state */
export async function applyActions(deps: ApplyDeps, seen: Observation, { actions, shape }: Plan): Promise<Applied> {
  const { database, server } = seen.observed
  const key = keyToString(keyOf(database))
  let state: Applied = { database, server, credentials: seen.credentials }
  for (const action of actions) {
    const { endpoint, plan: catalogPlan, organization, namespaceUid, backups } = seen.observed
    const { allowedExtensions } = seen
    const about = { endpoint, catalogPlan, organization, namespaceUid, archive: backups.archive, allowedExtensions }
    const now = { ...state, ...about, open: seen.open, shape }
    const changed = action === 'assign-hostname' ? { database: await withHostname(deps, now) } : await perform(deps, now, action)
    state = { ...state, ...changed }
    if (action === 'doubt-password') deps.events.failure(passwordReplaced(DedicatedDatabase, state.database))
    stepDone(`database.${action}`, key)
  }
  return state
}

/** State before one action. */
interface Situation extends Applied {
  readonly open: OpenServer | undefined
  readonly endpoint: TunnelEndpoint | undefined
  readonly catalogPlan: CatalogPlan | undefined
  readonly shape: ServerShape | undefined
  readonly archive: DatabaseArchive | undefined
  readonly organization: string | undefined
  readonly namespaceUid: string | undefined
  readonly allowedExtensions: readonly string[]
}

async function perform(deps: ApplyDeps, now: Situation, action: Exclude<Action, 'assign-hostname'>): Promise<Partial<Applied>> {
  const { store } = deps
  const { database } = now
  if (isLast(action)) {
    await leave(deps, database, action)
    return {}
  }
  switch (action) {
    case 'add-finalizer':
    case 'doubt-password':
      return { database: await onResource(store, database, action) }
    case 'server':
      return resize(deps, now)
    case 'secret':
      return { credentials: await createCredentials(store, database, addressOf(deps, now)) }
    case 'renew-secret':
    case 'move-secret':
      return { credentials: await rewrite(deps, now, action) }
    case 'delete-server':
      await deleteServer(store, now)
      return {}
    case 'extensions':
      return { extensions: await installExtensions(deps, { ...now, ...mayReach(deps, now), name: existing(now).name }) }
    default:
      await onOthers(deps, now, action)
      return {}
  }
}

const onOthers = (deps: ApplyDeps, now: Situation, action: EngineAction | ArchiveAction): Promise<void> =>
  isOfArchive(action) ? applyToArchive(deps, now, action) : onEngine(deps, now, action)

const LAST_ACTIONS = ['record-usage', 'forget-secret', 'release'] as const
type LastAction = (typeof LAST_ACTIONS)[number]
const isLast = (action: Action): action is LastAction => LAST_ACTIONS.some((last) => last === action)

/** Carries out a step of a deletion after that of the server. */
async function leave(deps: ApplyDeps, database: DedicatedDatabase, action: LastAction): Promise<void> {
  if (action === 'record-usage') await recordUsage(deps, database)
  else await (action === 'release' ? release : deleteCredentials)(deps.store, database)
}

/** Writes the finalizer or the status, if the resource still has the observed version. @returns the database after the write */
function onResource(store: Store, { metadata }: DedicatedDatabase, action: 'add-finalizer' | 'doubt-password') {
  const { uid, resourceVersion, finalizers = [] } = metadata
  const exactly = { uid, resourceVersion }
  return action === 'add-finalizer'
    ? store.mergePatch(DedicatedDatabase, metadata, { metadata: { finalizers: [...finalizers, FINALIZER] } }, exactly)
    : store.patchStatus(DedicatedDatabase, metadata, { passwordVersion: null, passwordId: null }, exactly)
}

async function withHostname({ store, databases, edges }: ApplyDeps, now: Situation): Promise<DedicatedDatabase> {
  return edges ? assignHostname(store, now, { tunnels: edges.tunnels, databases }) : now.database
}

/** Records the last use of a database. A forced deletion does not wait for a journal that is unavailable. */
async function recordUsage({ finishUsage }: ApplyDeps, database: DedicatedDatabase): Promise<void> {
  try {
    await finishUsage?.(database)
  } catch (cause) {
    if (database.metadata.annotations?.[annotations.forceDelete] === 'true') return
    throw new MooringError(USAGE_UNRECORDED, 'its usage could not be recorded; it is tried again', { cause })
  }
}

/**
 * Creates the server, or updates the existing one. A larger size counts before the server gets it, so that a crash leaves no large server that
 * counts as the former plan. Another size counts with the status that is reported after the update.
 * @throws MooringError `usage_full`, or StoreError `conflict` for a stale server
 */
async function resize(deps: ApplyDeps, now: Situation): Promise<Partial<Applied>> {
  const { server, shape, catalogPlan: plan, archive } = now
  let { database } = now
  if (server && shape) {
    const { size } = shape
    // Storage only grows. A plan with less than what counted last is refused, unless the observed server hides the growth.
    const isLess = size.storageGiB < (database.status?.usagePeriods?.at(-1)?.storageGiB ?? 0)
    if (isLess) await requirePresent(deps.store, server)
    const resized = { ...server, spec: { ...server.spec, size } }
    const usagePeriods = await plannedPeriods(deps, { database, server: resized, plan, size, archive })
    if (usagePeriods && isLarger(size, server.spec.size)) {
      const { uid, resourceVersion } = database.metadata
      const exactly = { uid, resourceVersion }
      database = await deps.store.patchStatus(DedicatedDatabase, database.metadata, { usagePeriods }, exactly)
      stepDone('database.usage', keyToString(keyOf(database)))
    }
  }
  return { database, server: await applyServer(deps.store, now) }
}

/** @throws StoreError `conflict` when the spec of a server has changed */
async function requirePresent(store: Store, server: DatabaseServer): Promise<void> {
  const present = await store.get(DatabaseServer, keyOf(server))
  if (present?.metadata.generation === server.metadata.generation) return
  throw new StoreError(StoreCode.conflict, `the server ${server.metadata.name} has changed`)
}

/** Whether any part of a size is larger than before. */
const isLarger = (size: Size, before: Size | undefined): boolean =>
  !before || size.cpu > before.cpu || size.memoryMiB > before.memoryMiB || size.storageGiB > before.storageGiB

/** Creates the server, or updates the existing one. */
async function applyServer(store: Store, { database, server, shape }: Situation): Promise<DatabaseServer> {
  if (!shape) throw new MooringError(EngineCode.failed, 'the size of the server is unknown')
  const draft = serverOf(database, shape)
  const update = () => store.mergePatch(DatabaseServer, draft.metadata, patchOf(shape))
  if (server) return update()
  try {
    return await store.create(DatabaseServer, draft)
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    return update()
  }
}

async function deleteServer(store: Store, { server }: Situation): Promise<void> {
  if (!server) return
  await ignoringGone(store.delete(DatabaseServer, keyOf(server), { uid: server.metadata.uid }))
}

/** Updates the Secret: `renew-secret` writes a new password, `move-secret` keeps the password. Both write the present address. */
async function rewrite(deps: ApplyDeps, now: Situation, action: 'renew-secret' | 'move-secret'): Promise<Credentials> {
  const address = addressOf(deps, now)
  const fresh = freshCredentials(now.database, address)
  const { name, password, passwordVersion, passwordId = fresh.passwordId } = action === 'move-secret' ? existing(now) : fresh
  const credentials = { ...fresh, name, password, passwordVersion, passwordId }
  await updateCredentials(deps.store, now.database, { credentials, address })
  return credentials
}

type EngineAction = 'adopt' | 'claim' | 'admit' | 'verify' | 'password'

async function onEngine(deps: ApplyDeps, now: Situation, action: EngineAction): Promise<void> {
  const { admin } = mayReach(deps, now)
  const { name, password } = existing(now)
  const { size = { memoryMiB: 0 }, access } = now.server?.spec ?? {}
  const tenant = { name, password }
  const steps: Readonly<Record<EngineAction, () => ReturnType<EngineAdmin['verify']> | undefined>> = {
    adopt: () => admin.adopt(name),
    claim: () => admin.claim(tenant, { connections: connectionsOf(size) }, {}),
    admit: () => admin.admit(access?.sources),
    verify: () => admin.verify(tenant),
    password: () => admin.setPassword(tenant),
  }
  await steps[action]()
  if (action === 'password') deps.suspicions.password.delete(now.database.metadata.uid)
}

function existing({ credentials }: Situation): Credentials {
  if (!credentials) throw new MooringError(EngineCode.failed, 'the credentials are missing')
  return credentials
}

/** @throws MooringError `engine_unavailable` when this process may not act, or the server does not answer */
function mayReach(deps: ApplyDeps, now: Situation): OpenServer {
  if (deps.mayAct?.() === false) throw new MooringError(EngineCode.unavailable, 'this process is not the leader')
  return reachable(now)
}

function reachable({ open }: Situation): OpenServer {
  if (!open) throw new MooringError(EngineCode.unavailable, 'the database server does not answer')
  return open
}

function addressOf({ ca, caFile }: ApplyDeps, now: Situation): Address {
  const { engine } = reachable(now)
  const { host, port, tls } = now.server?.status ?? {}
  if (!now.server || host === undefined || port === undefined)
    throw new MooringError(EngineCode.unavailable, 'the database server does not answer')
  return { server: now.server, engine, host, port, tls, ca: ca(), caFile }
}

async function release(store: Store, { metadata }: DedicatedDatabase): Promise<void> {
  const finalizers = (metadata.finalizers ?? []).filter((name) => name !== FINALIZER)
  await ignoringGone(store.mergePatch(DedicatedDatabase, metadata, { metadata: { finalizers } }, { uid: metadata.uid }))
}
