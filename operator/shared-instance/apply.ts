import { MooringError } from '../../shared/errors.ts'
import { FINALIZER } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { ignoringGone, keyOf, keyToString, type Store } from '../../store/port.ts'
import { stepDone } from '../reporter.ts'
import { EngineCode, type InstalledExtensions, type Limits, LoginState } from '../engines/engine.ts'
import type { Events } from '../events/events.ts'
import type { OpenServer } from '../server/admins.ts'
import { ownerOf } from '../server/discarded.ts'
import {
  type Address,
  createCredentials,
  databaseName,
  deleteCredentials,
  freshCredentials,
  passwordReplaced,
  updateCredentials,
} from './credentials.ts'
import type { Credentials } from './kept-secret.ts'
import type { Observation } from './observe.ts'
import type { Action } from './plan.ts'
import type { Suspicions } from './slots.ts'

export interface ApplyDeps {
  readonly store: Store
  readonly limits: Limits
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  /** File name of that CA in connection strings. */
  readonly caFile: string
  readonly suspicions: Suspicions
  /** Receives what happened to the instance that no condition says. */
  readonly events: Events
  /**
   * Whether this process may act now. Default: always. Engines know no lease: a process that lost its leadership while it was suspended
   * would repeat a reset, or restore a password that its successor has replaced.
   */
  readonly mayAct?: (() => boolean) | undefined
}

/** Result of actions: the credentials, and the resource after its own writes. */
export interface Changed {
  readonly credentials?: Credentials | undefined
  readonly instance?: SharedInstance | undefined
  /** Extensions in the database, and those that could not be installed; undefined when the database was not looked at. */
  readonly extensions?: InstalledExtensions | undefined
}

/** Carries out a plan's actions in order. Announces each when it is done (operator/reporter.ts). @returns the resulting state */
export async function applyActions(
  deps: ApplyDeps,
  seen: Observation,
  actions: readonly Action[],
): Promise<Changed & { readonly instance: SharedInstance }> {
  const key = keyToString(keyOf(seen.observed.instance))
  const flow = flowOf(seen)
  let { credentials } = seen
  let { instance } = seen.observed
  let extensions: Changed['extensions']
  for (const action of actions) {
    const changed = await perform(deps, { ...seen, credentials, observed: { ...seen.observed, instance } }, action)
    credentials = changed.credentials ?? credentials
    instance = changed.instance ?? instance
    extensions = changed.extensions ?? extensions
    if (action === 'doubt-password') deps.events.failure(passwordReplaced(SharedInstance, instance))
    stepDone(`${flow}.${action}`, key)
  }
  return { credentials, instance, extensions }
}

/** Flow of the steps; traces and fault tests use its name. */
function flowOf({ observed: { instance } }: Observation): string {
  if (instance.metadata.deletionTimestamp !== undefined) return 'delete'
  if (instance.status?.name === undefined) return 'claim'
  return (instance.status.resetVersion ?? 0) < instance.spec.resetVersion ? 'reset' : 'change'
}

async function perform(deps: ApplyDeps, seen: Observation, action: Action): Promise<Changed> {
  const { store } = deps
  const { instance } = seen.observed
  switch (action) {
    case 'add-finalizer':
    case 'expire':
    case 'doubt-password':
    case 'release':
      return { instance: await onResource(store, instance, action) }
    case 'forget-secret':
      await deleteCredentials(store, instance)
      return {}
    case 'secret':
      return { credentials: await createCredentials(store, instance, addressOf(deps, seen)) }
    case 'renew-secret':
    case 'move-secret':
      return { credentials: await rewrite(deps, seen, action) }
    case 'extensions':
      return { extensions: await installExtensions(deps, seen) }
    default:
      await onEngine(deps, seen, action)
      dispel(deps.suspicions, instance, action)
      return {}
  }
}

function dispel({ missing, oversize, password }: Suspicions, { metadata }: SharedInstance, action: EngineAction): void {
  if (action === 'password') password.delete(metadata.uid)
  if (action !== 'reset') return
  missing.delete(metadata.uid)
  oversize.delete(metadata.uid)
}

/** Installs the desired extensions. Those that the Region does not allow are among the refused ones. */
async function installExtensions(deps: ApplyDeps, seen: Observation): Promise<InstalledExtensions> {
  const { spec, metadata } = seen.observed.instance
  const { admin } = mayReach(deps, seen)
  const allowed = spec.extensions.filter((name) => seen.allowedExtensions.includes(name))
  const notAllowed = spec.extensions.filter((name) => !allowed.includes(name))
  const { installed, refused } = await admin.installExtensions(nameOf(seen), allowed)
  deps.suspicions.extensions.delete(metadata.uid)
  const notAllowedHere = notAllowed.map((name) => ({
    name,
    reason: 'unavailable' as const,
    message: `the extension ${name} is not one that the Region allows for ${spec.motor}`,
  }))
  return { installed, refused: [...notAllowedHere, ...refused] }
}

type ResourceAction = 'add-finalizer' | 'expire' | 'doubt-password' | 'release'

/** @returns the resource after the write, if it still exists. Writes apply to the observed version only. */
async function onResource(store: Store, instance: SharedInstance, action: ResourceAction): Promise<SharedInstance | undefined> {
  const { uid, resourceVersion, finalizers = [] } = instance.metadata
  const exactly = { uid, resourceVersion }
  const key = keyOf(instance)
  switch (action) {
    case 'add-finalizer':
      return store.mergePatch(SharedInstance, key, { metadata: { finalizers: [...finalizers, FINALIZER] } }, exactly)
    case 'doubt-password':
      return store.patchStatus(SharedInstance, key, { passwordVersion: null, passwordId: null }, exactly)
    case 'expire':
      // The precondition protects an expiry that was postponed a moment ago.
      await store.delete(SharedInstance, key, exactly)
      return undefined
    case 'release':
      await release(store, instance)
      return undefined
  }
}

async function rewrite(deps: ApplyDeps, seen: Observation, action: 'renew-secret' | 'move-secret'): Promise<Credentials> {
  const { instance } = seen.observed
  const address = addressOf(deps, seen)
  const fresh = freshCredentials(instance, address)
  const kept = action === 'move-secret' ? existing(seen) : seen.credentials
  // A name is permanent: when the Secret is damaged or gone, the name follows from the status.
  const { name } = kept ?? fresh
  const { password, passwordVersion, passwordId = fresh.passwordId } = action === 'move-secret' ? existing(seen) : fresh
  const credentials = { ...fresh, name, password, passwordVersion, passwordId }
  await updateCredentials(deps.store, instance, { credentials, address })
  return credentials
}

type EngineAction = Exclude<Action, ResourceAction | 'forget-secret' | 'secret' | 'renew-secret' | 'move-secret' | 'extensions'>

/** Engine, for a step that changes something. @throws MooringError `engine_unavailable` */
function mayReach({ mayAct }: ApplyDeps, seen: Observation): OpenServer {
  if (mayAct?.() === false) throw new MooringError(EngineCode.unavailable, 'this process is not the leader: it may not act')
  return reachable(seen)
}

async function onEngine(deps: ApplyDeps, seen: Observation, action: EngineAction): Promise<void> {
  const { limits } = deps
  const { admin } = mayReach(deps, seen)
  const name = nameOf(seen)
  const origin = { template: seen.template }
  const owner = seen.server && ownerOf(seen.server, seen.observed.instance.metadata.namespace ?? '')
  const steps: Readonly<Record<EngineAction, () => Promise<void>>> = {
    claim: () => admin.claim(tenantOf(seen), limits, origin),
    verify: () => admin.verify(tenantOf(seen)),
    password: () => admin.setPassword(tenantOf(seen)),
    reset: async () => {
      const { login } = await admin.find(name)
      // The server lost it, or is another than the one that had it.
      if (login === LoginState.absent) await admin.claim(tenantOf(seen), limits, origin)
      else await admin.reset(name, origin, owner)
    },
    enable: () => admin.enableLogin(name),
    disable: () => admin.disableLogin(name),
    drop: () => admin.drop(name, owner),
  }
  await steps[action]()
}

/** Name of the database. Without status and Secret, the name that the instance's claim would use, or had used. */
function nameOf({ credentials, observed: { instance } }: Observation): string {
  return credentials?.name ?? databaseName(instance)
}

const tenantOf = (seen: Observation) => {
  const { name, password } = existing(seen)
  return { name, password }
}

function existing({ credentials }: Observation): Credentials {
  if (!credentials) throw new MooringError(EngineCode.failed, 'the credentials are missing')
  return credentials
}

function reachable({ open }: Observation): OpenServer {
  if (!open) throw new MooringError(EngineCode.unavailable, 'the database server does not answer')
  return open
}

function addressOf({ ca, caFile }: ApplyDeps, seen: Observation): Address {
  const { server, observed } = seen
  if (!server || observed.placement.found !== 'reachable')
    throw new MooringError(EngineCode.unavailable, 'the database server does not answer')
  const { host, port, tls } = observed.placement
  return { server, engine: reachable(seen).engine, host, port, tls, ca: ca(), caFile }
}

async function release(store: Store, instance: SharedInstance): Promise<void> {
  const finalizers = (instance.metadata.finalizers ?? []).filter((name) => name !== FINALIZER)
  await ignoringGone(
    store.mergePatch(SharedInstance, keyOf(instance), { metadata: { finalizers } }, { uid: instance.metadata.uid }),
  )
}
