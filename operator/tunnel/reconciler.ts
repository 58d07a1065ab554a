import { MooringError } from '../../shared/errors.ts'
import { Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { notReady, type Decision } from '../../store/conditions.ts'
import { keyOf, keyToString, type Key } from '../../store/port.ts'
import { stepDone, type Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { perform } from './apply.ts'
import { changedAt, conditionsOf, failure, statusFields } from './status-fields.ts'
import { followedOf, turnOf } from './acme-certificate.ts'
import { createHeaderKeeper } from './header-values.ts'
import { createRevoker, type Held } from './revocation.ts'
import { type AdmitDeps, observe, type ObserveDeps } from './observe.ts'
import { type Action, AGAIN_MS, isGood, planTunnel, type Observed, type Plan } from './plan.ts'

export interface TunnelReconcilerDeps extends ObserveDeps, AdmitDeps {
  readonly report: Report
  /** Returns the time in milliseconds for which webhooks hold up a deletion; undefined when they do not. */
  readonly lastEvents?: ((tunnel: Tunnel) => Promise<number | undefined>) | undefined
}

const MESSAGE_MAX = 1024
const GONE: Outcome = { result: 'settled', reason: 'Gone' }

/** Creates the reconciler: observe, plan, apply, report; repeated after actions that change the observed state, until no action is left. */
export function createTunnelReconciler(deps: TunnelReconcilerDeps): (key: Key) => Promise<Outcome> {
  const revoker = createRevoker(deps)
  const headers = createHeaderKeeper(deps)

  /** Carries the actions out. @returns the resulting tunnel */
  async function apply(tunnel: Tunnel, actions: readonly Action[]): Promise<Tunnel> {
    let current = tunnel
    for (const action of actions) {
      current = (await perform(deps, current, action)) ?? current
      stepDone(`tunnel.${action.do}`, keyToString(keyOf(tunnel)))
    }
    return current
  }

  /** Reports a failed attempt. A valid certificate stays in use: only the failed renewal is reported. */
  async function failed(observed: Observed, planned: Decision, error: unknown): Promise<Outcome> {
    const { tunnel, now } = observed
    const lastError = (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_MAX)
    const decision = isGood(observed) ? planned : notReady(TunnelReason.ObtainingCertificate, lastError)
    await deps.report(Tunnel, tunnel, decision, { ...failure(observed, lastError, now + AGAIN_MS), ...changedAt(observed) })
    return { result: 'waiting', reason: decision.reason, requeueAfterMs: AGAIN_MS }
  }

  /** Reports that a valid certificate is being renewed, which may take long. @returns the resulting tunnel; undefined when it is gone */
  async function announce(observed: Observed, decision: Decision, renewing: Decision): Promise<Tunnel | undefined> {
    const { tunnel } = observed
    await deps.report(Tunnel, tunnel, decision, { conditions: conditionsOf(observed, renewing), ...changedAt(observed) })
    const current = await deps.store.get(Tunnel, keyOf(tunnel))
    return current?.metadata.uid === tunnel.metadata.uid ? current : undefined
  }

  /** Holds up the deletion of a tunnel for its last events and the revocation of its certificate. Returns undefined when both are over. */
  async function holdDeletion(
    tunnel: Tunnel,
    { actions, revokeAt }: Pick<Plan, 'actions' | 'revokeAt'>,
  ): Promise<Outcome | undefined> {
    if (!actions.some((action) => action.do === 'release')) return undefined
    const eventsMs = await deps.lastEvents?.(tunnel)
    if (eventsMs !== undefined) return { result: 'waiting', reason: TunnelReason.Deleting, requeueAfterMs: eventsMs }
    const held = revokeAt && (await revoker.revoke(tunnel, revokeAt))
    return held && reportHeld(tunnel, held)
  }

  /** Reports why the certificate of a deleted tunnel is not revoked. The reconcile after it deletes the tunnel when the wait is over. */
  async function reportHeld(tunnel: Tunnel, { decision, requeueAfterMs }: Held): Promise<Outcome> {
    await deps.report(Tunnel, tunnel, decision)
    return { result: 'waiting', reason: decision.reason, requeueAfterMs }
  }

  async function step(tunnel: Tunnel, hasObtained: boolean): Promise<Step> {
    const observed = await observe(deps, tunnel)
    const { actions, decision, renewing, requeueAfterMs, revokeAt } = planTunnel(observed)
    const held = await holdDeletion(tunnel, { actions, revokeAt })
    if (held) return { outcome: held }
    if (decision && actions.some((action) => action.do === 'obtain')) {
      return obtain({ observed, actions, decision, renewing, hasObtained })
    }
    const current = await apply(tunnel, actions)
    if (!decision) return { outcome: { result: 'settled', reason: TunnelReason.Deleting } }
    const next = stepAfter(actions, { tunnel: current, hasObtained })
    if (next) return goingOn(next, decision)
    const followed = followedOf(observed)
    if (followed) deps.issuers.acme?.follow(turnOf(tunnel, observed.assigned), followed)
    const { fields, problem, againMs } = await headers.keep(current, observed.assigned)
    await deps.report(Tunnel, current, decision, {
      ...statusFields(observed),
      ...changedAt(observed),
      ...fields,
      conditions: conditionsOf(observed, renewing, problem),
    })
    const result = decision.status === 'True' ? 'settled' : 'waiting'
    return { outcome: { result, reason: decision.reason, requeueAfterMs: soonest(requeueAfterMs, againMs) } }
  }

  async function obtain({ observed, actions, decision, renewing, hasObtained }: Obtaining): Promise<Step> {
    const tunnel = renewing ? await announce(observed, decision, renewing) : observed.tunnel
    if (!tunnel) return { outcome: GONE }
    try {
      // Otherwise an issuer of invalid certificates would be asked endlessly.
      if (hasObtained) throw new MooringError('certificate_unusable', 'the signed certificate is not valid for the tunnel')
      return goingOn({ tunnel: await apply(tunnel, actions), hasObtained: true }, decision)
    } catch (error) {
      return { outcome: await failed({ ...observed, tunnel }, decision, error) }
    }
  }

  return async function reconcileTunnel(key) {
    let tunnel = deps.tunnels.get(key)
    if (!tunnel) return GONE
    let hasObtained = false
    // Terminates: a hostname is assigned and a certificate obtained at most once each.
    for (;;) {
      const { next, outcome } = await step(tunnel, hasObtained)
      if (!next) return outcome
      ;({ tunnel, hasObtained } = next)
    }
  }
}

/** Input of the step that follows these actions at once; undefined when they change nothing that a plan depends on. */
function stepAfter(actions: readonly Action[], { tunnel, hasObtained }: NonNullable<Step['next']>): Step['next'] {
  const did = (what: Action['do']) => actions.some((action) => action.do === what)
  if (did('assign')) return { tunnel, hasObtained: false }
  // Once: a certificate that does not fit would be installed endlessly.
  return did('install') && !hasObtained ? { tunnel, hasObtained: true } : undefined
}

/** Returns the smaller of two times; undefined without one. */
const soonest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

interface Obtaining {
  readonly observed: Observed
  readonly actions: readonly Action[]
  readonly decision: Decision
  readonly renewing: Decision | undefined
  readonly hasObtained: boolean
}

interface Step {
  /** Input of the next step; undefined when no step follows. */
  readonly next?: { readonly tunnel: Tunnel; readonly hasObtained: boolean }
  readonly outcome: Outcome
}

const goingOn = (next: NonNullable<Step['next']>, { reason }: Decision): Step => ({
  next,
  outcome: { result: 'waiting', reason },
})
