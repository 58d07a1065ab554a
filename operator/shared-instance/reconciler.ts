import { MooringError } from '../../shared/errors.ts'
import {
  ExtensionReason,
  EXTENSIONS_INSTALLED,
  InstanceReason,
  isExtensionReason,
  SharedInstance,
} from '../../crds/shared-instance.ts'
import type { Condition } from '../../crds/kind.ts'
import { notReady, ready, type Decision, withCondition, withoutCondition } from '../../store/conditions.ts'
import { isStoreError, keyOf, keyToString, type Key } from '../../store/port.ts'
import { stepDone, type StatusFields, type Report } from '../reporter.ts'
import { EngineCode, type InstalledExtensions } from '../engines/engine.ts'
import type { Outcome } from '../runtime/controller.ts'
import { GRACE_MS } from '../server/reconciler.ts'
import { applyActions, type ApplyDeps, type Changed } from './apply.ts'
import { secretName } from './credentials.ts'
import type { Credentials } from './kept-secret.ts'
import { isOver } from './indexes.ts'
import { observe, type Observation, type ObserveDeps } from './observe.ts'
import { type Action, type InForce, type Plan, planInstance, type TemplateState, unreachable, type Observed } from './plan.ts'

export interface InstanceReconcilerDeps extends ObserveDeps, ApplyDeps {
  readonly report: Report
  /** Receives the duration of a claim in seconds. */
  readonly onClaim?: (seconds: number) => void
}

/** Message while the operator's RoleBinding is not there yet. */
const NO_ACCESS = 'the operator may not write Secrets in its Namespace yet'

/** Returns the state of a template that an engine's error is about. The plan is then made again, and repeats no completed action. */
function templateOf({ code, message }: MooringError): TemplateState | undefined {
  if (code === EngineCode.templateInUse) return 'in-use'
  if (code === EngineCode.templateMissing) return 'missing'
  return code === EngineCode.templateNotCopyable ? { why: message } : undefined
}

/** Creates the reconciler: observe, plan, apply, report. The status is written last; only then is a claim visible. */
export function createInstanceReconciler(deps: InstanceReconcilerDeps): (key: Key) => Promise<Outcome> {
  async function report(
    { instance, extensions }: Pick<Observed, 'instance'> & Pick<Changed, 'extensions'>,
    decision: Decision,
    fields: StatusFields<typeof SharedInstance> = {},
  ): Promise<void> {
    const others = extensionAlarm(instance, extensions?.refused ?? nothingRefused(instance), deps.now())
    const conditions = alarms(others, instance, { decision, now: deps.now() })
    await deps.report(SharedInstance, instance, decision, { ...fields, conditions })
  }

  async function carryOut(seen: Observation, plan: Plan): Promise<void> {
    const { observed } = seen
    const key = keyToString(keyOf(observed.instance))
    const { credentials, instance, extensions } = await applyActions(deps, seen, plan.actions)
    if (!plan.decision) return
    const { inForce } = plan
    const fields = inForce && credentials ? inForceFields(seen, { credentials, inForce }) : leaving(plan)
    const found = extensions && { extensions: extensions.installed, extensionsVersion: instance.spec.extensionsVersion }
    await report({ instance, extensions }, lackingExtensions(extensions, plan.decision), { ...fields, ...found })
    for (const flow of ['claim', 'reset'] as const) if (plan.actions.includes(flow)) stepDone(`${flow}.status`, key)
  }

  /** Handles an engine's error. @throws the error, when the reconcile is to be repeated after a back-off */
  async function recover(seen: Observation, error: MooringError): Promise<Outcome> {
    const template = templateOf(error)
    if (template) {
      const plan = planInstance({ ...seen.observed, template })
      await carryOut(seen, plan)
      return outcomeOf(plan)
    }
    const isGoing = seen.observed.instance.metadata.deletionTimestamp !== undefined
    if (error.code !== EngineCode.unavailable && error.code !== EngineCode.failed) throw error
    if (!isGoing) {
      // The instance has been admitted: with a status of an exceeded quota, no server would trigger it.
      if (isOver(seen.observed.instance)) await report(seen.observed, unreachable)
      throw error
    }
    // The server is up but fails to drop the database: for the tenant that equals a server that is down.
    const plan = planInstance({ ...seen.observed, placement: { found: 'down' } })
    await carryOut(seen, plan)
    if (plan.decision) throw error
    return { result: 'settled', reason: InstanceReason.Deleting }
  }

  const isOpening = createOpening(deps.now)

  async function handle(instance: SharedInstance): Promise<Outcome> {
    const started = performance.now()
    const seen = await observe(deps, instance)
    const plan = planInstance(seen.observed)
    if (isOpening(seen, plan))
      return { result: 'waiting', reason: InstanceReason.WaitingForServer, requeueAfterMs: OPENING_AGAIN_MS }
    try {
      await carryOut(seen, plan)
    } catch (error) {
      if (!(error instanceof MooringError)) throw error
      return recover(seen, error)
    }
    if (plan.actions.includes('claim')) deps.onClaim?.((performance.now() - started) / 1_000)
    return outcomeOf(plan)
  }

  /** Reports a missing permission for Secrets, and repeats the reconcile after a back-off. */
  async function withAccess(instance: SharedInstance): Promise<Outcome> {
    try {
      return await handle(instance)
    } catch (error) {
      const isStaying = instance.metadata.deletionTimestamp === undefined
      if (isStoreError(error, 'forbidden') && isStaying) {
        const problem = await deps.tenancy?.problemOf(instance.metadata.namespace)
        await report({ instance }, notReady(InstanceReason.NoAccess, problem ?? NO_ACCESS))
      }
      throw error
    }
  }

  return async function reconcileInstance(key) {
    const instance = deps.instances.get(key)
    if (!instance) return { result: 'settled', reason: 'Gone' }
    const outcome = await withAccess(instance)
    const isGone = instance.metadata.deletionTimestamp !== undefined && outcome.result === 'settled'
    // From here on the status holds the slot, or the instance is gone.
    if (instance.status?.serverRef !== undefined || isGone) deps.slots.release(instance.metadata.uid)
    return outcome
  }
}

/** Interval of checking whether a server's connection is open. Its opening also wakes the instances of the server. */
const OPENING_AGAIN_MS = 1_000

const WITHOUT_ENGINE: ReadonlySet<Action> = new Set(['add-finalizer', 'expire', 'forget-secret', 'release', 'doubt-password'])

/**
 * Detects instances whose actions need a server that is ready by its status, and that this process, which has just started, has not connected to
 * yet. Nothing has failed then. The time begins with the first reconcile: until then the process was not the leader.
 */
function createOpening(now: () => Date): (seen: Observation, plan: Plan) => boolean {
  let end: number | undefined
  return function isOpening({ observed, open }, { actions }) {
    const at = now().getTime()
    end ??= at + GRACE_MS
    return !open && observed.placement.found === 'reachable' && actions.some((each) => !WITHOUT_ENGINE.has(each)) && at < end
  }
}

function outcomeOf({ decision, requeueAfterMs }: Plan): Outcome {
  if (!decision) return { result: 'settled', reason: InstanceReason.Deleting }
  return { result: isFinal(decision) ? 'settled' : 'waiting', reason: decision.reason, requeueAfterMs }
}

/** Conditions beside Ready: a blocked clean-up has its own, so that clients can wait for it. */
function alarms(
  conditions: readonly Condition[] | undefined,
  { metadata }: SharedInstance,
  { decision: { reason, message }, now }: { readonly decision: Decision; readonly now: Date },
): readonly Condition[] {
  const type = InstanceReason.CleanupBlocked
  if (reason !== type) return withoutCondition(conditions, type)
  const blocked = ready(InstanceReason.ServerUnavailable, message)
  return withCondition(conditions, blocked, { type, generation: metadata.generation, now })
}

/** No refused extension, when the database has all that the spec lists, e.g. since a refused one was taken out of it; else undefined. */
const nothingRefused = ({ spec, status }: SharedInstance): InstalledExtensions['refused'] | undefined =>
  spec.extensions.every((name) => status?.extensions?.includes(name)) ? [] : undefined

/** Conditions with the one about extensions, as the last attempt to install them ended. */
function extensionAlarm(
  { status, metadata }: SharedInstance,
  refused: InstalledExtensions['refused'] | undefined,
  now: Date,
): readonly Condition[] | undefined {
  const before = status?.conditions
  if (refused === undefined) return before
  const decision = refusalOf(refused)
  if (!decision) return withoutCondition(before, EXTENSIONS_INSTALLED)
  return withCondition(before, decision, { type: EXTENSIONS_INSTALLED, generation: metadata.generation, now })
}

/** Decision about refused extensions; undefined when there are none. */
function refusalOf(refused: InstalledExtensions['refused']): Decision | undefined {
  const [first] = refused
  if (!first) return undefined
  const reason = first.reason === 'conflict' ? ExtensionReason.Conflict : ExtensionReason.Unsupported
  return notReady(reason, refused.map((each) => each.message).join('; '))
}

/** Decision about a database that works, which is not ready without the extensions of its spec. They are tried at each reconcile. */
const lackingExtensions = (extensions: InstalledExtensions | undefined, decision: Decision): Decision =>
  (decision.status === 'True' ? refusalOf(extensions?.refused ?? []) : undefined) ?? decision

const FINAL: ReadonlySet<string> = new Set([
  InstanceReason.Claimed,
  InstanceReason.Disabled,
  InstanceReason.SizeExceeded,
  InstanceReason.Suspended,
])

/** Whether a condition means that the desired state is in force as far as possible. */
function isFinal({ reason }: Decision): boolean {
  return FINAL.has(reason) || isExtensionReason(reason)
}

const leaving = ({ leavesServer }: Plan) => (leavesServer ? { serverRef: null } : {})

/** Status fields with the database's address and the desired state that is in force. */
function inForceFields(
  { observed, server }: Observation,
  { credentials, inForce }: { credentials: Credentials; inForce: InForce },
) {
  const { name, passwordVersion, passwordId, server: serverName } = credentials
  const { placement } = observed
  const { host, port } = placement.found === 'reachable' ? placement : credentials
  return {
    name,
    user: name,
    secretRef: { name: secretName(observed.instance) },
    host,
    port,
    tls: placement.found === 'reachable' ? (placement.tls ?? null) : undefined,
    isEnabled: inForce.login,
    engineVersion: server?.status?.engineVersion,
    serverRef: { name: serverName, uid: server?.metadata.uid },
    passwordVersion,
    passwordId: passwordId ?? null,
    resetVersion: inForce.resetVersion,
  }
}
