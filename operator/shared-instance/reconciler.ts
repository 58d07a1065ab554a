import { MooringError } from '../../crds/errors.ts'
import { InstanceReason, SharedInstance } from '../../crds/shared-instance.ts'
import { notReady, type Verdict, withCondition } from '../../store/conditions.ts'
import { isStoreError } from '../../store/errors.ts'
import { keyOf, keyToString } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'
import { stepDone } from '../../store/steps.ts'
import { EngineCode } from '../engines/engine.ts'
import type { Outcome } from '../runtime/controller.ts'
import { applyActions, type ApplyDeps } from './apply.ts'
import { type Credentials, secretName } from './credentials.ts'
import { observe, type Observation, type ObserveDeps } from './observe.ts'
import { type Plan, planInstance, type World } from './plan.ts'

export interface InstanceReconcilerDeps extends ObserveDeps, ApplyDeps {
  /** Called with the seconds that a claim took. */
  readonly onClaim?: (seconds: number) => void
}

/** How soon a template with open sessions is tried again. */
const TEMPLATE_AGAIN_MS = 500

/** Observe, plan, apply, report. The status is written last, and only then is a claim known to anyone. */
export function createInstanceReconciler(deps: InstanceReconcilerDeps): (key: Key) => Promise<Outcome> {
  async function report({ instance }: World, verdict: Verdict, standing: object = {}): Promise<void> {
    const { generation, uid } = instance.metadata
    const conditions = withCondition(instance.status?.conditions, verdict, { type: 'Ready', generation, now: deps.now() })
    try {
      await deps.store.patchStatus(
        SharedInstance,
        keyOf(instance),
        { ...standing, observedGeneration: generation, conditions },
        { uid },
      )
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }

  async function carryOut(seen: Observation, plan: Plan): Promise<void> {
    const { world } = seen
    const key = keyToString(keyOf(world.instance))
    const credentials = await applyActions(deps, seen, plan.actions)
    if (!plan.verdict) return
    await report(
      world,
      plan.verdict,
      isStanding(plan.verdict) && credentials ? standingOf(seen, { credentials, verdict: plan.verdict }) : {},
    )
    for (const flow of ['claim', 'reset'] as const) if (plan.actions.includes(flow)) stepDone(`${flow}.status`, key)
  }

  async function handle(instance: SharedInstance): Promise<Outcome> {
    const started = performance.now()
    const seen = await observe(deps, instance)
    const plan = planInstance(seen.world)
    const { verdict, requeueAfterMs } = plan
    try {
      await carryOut(seen, plan)
    } catch (error) {
      if (!(error instanceof MooringError) || error.code !== EngineCode.templateInUse) throw error
      await report(seen.world, notReady(InstanceReason.TemplateInUse, 'sessions are open on the template'))
      return { verdict: 'waiting', reason: InstanceReason.TemplateInUse, requeueAfterMs: TEMPLATE_AGAIN_MS }
    }
    if (plan.actions.includes('claim')) deps.onClaim?.((performance.now() - started) / 1_000)
    if (!verdict) return { verdict: 'settled', reason: InstanceReason.Deleting }
    return { verdict: isStanding(verdict) ? 'settled' : 'waiting', reason: verdict.reason, requeueAfterMs }
  }

  return async function reconcileInstance(key) {
    const instance = deps.instances.get(key)
    if (!instance) return { verdict: 'settled', reason: 'Gone' }
    const outcome = await handle(instance)
    // From here on the status itself counts, or nothing does.
    if (instance.status?.serverRef !== undefined || instance.metadata.deletionTimestamp !== undefined)
      deps.places.release(instance.metadata.uid)
    return outcome
  }
}

/** Verdicts that say the wish has been carried out as far as it can be. */
function isStanding({ reason }: Verdict): boolean {
  return reason === InstanceReason.Claimed || reason === InstanceReason.Disabled || reason === InstanceReason.SizeExceeded
}

/** The part of the status that says where the database is and what of the wish is in force. */
function standingOf({ world, server }: Observation, { credentials, verdict }: { credentials: Credentials; verdict: Verdict }) {
  const { name, passwordVersion, server: serverName } = credentials
  const { host, port } = world.placement.found === 'reachable' ? world.placement : credentials
  return {
    name,
    user: name,
    secretRef: { name: secretName(world.instance) },
    host,
    port,
    isEnabled: verdict.status === 'True',
    engineVersion: server?.status?.engineVersion,
    serverRef: { name: serverName },
    passwordVersion,
    resetVersion: world.instance.spec.resetVersion,
  }
}
