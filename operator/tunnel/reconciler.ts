import { MooringError } from '../../shared/errors.ts'
import { Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { notReady, type Verdict } from '../../store/conditions.ts'
import { keyOf, keyToString } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'
import { stepDone } from '../../store/steps.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { perform } from './apply.ts'
import { changedAt, conditionsOf, failure, findings } from './findings.ts'
import { type AdmitDeps, observe, type ObserveDeps } from './observe.ts'
import { type Action, AGAIN_MS, isGood, planTunnel, type Observed } from './plan.ts'

export interface TunnelReconcilerDeps extends ObserveDeps, AdmitDeps {
  readonly report: Report
}

const MESSAGE_MAX = 1024
const GONE: Outcome = { verdict: 'settled', reason: 'Gone' }

/** Creates the reconciler: observe, plan, apply, report; repeated after actions that change the observed state, until no action is left. */
export function createTunnelReconciler(deps: TunnelReconcilerDeps): (key: Key) => Promise<Outcome> {
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
  async function failed(observed: Observed, planned: Verdict, error: unknown): Promise<Outcome> {
    const { tunnel, now } = observed
    const lastError = (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_MAX)
    const verdict = isGood(observed) ? planned : notReady(TunnelReason.ObtainingCertificate, lastError)
    await deps.report(Tunnel, tunnel, verdict, { ...failure(observed, lastError, now + AGAIN_MS), ...changedAt(observed) })
    return { verdict: 'waiting', reason: verdict.reason, requeueAfterMs: AGAIN_MS }
  }

  /** Reports that a valid certificate is being renewed, which may take long. @returns the resulting tunnel; undefined when it is gone */
  async function announce(observed: Observed, verdict: Verdict, renewing: Verdict): Promise<Tunnel | undefined> {
    const { tunnel } = observed
    await deps.report(Tunnel, tunnel, verdict, { conditions: conditionsOf(observed, renewing), ...changedAt(observed) })
    const current = await deps.store.get(Tunnel, keyOf(tunnel))
    return current?.metadata.uid === tunnel.metadata.uid ? current : undefined
  }

  async function step(tunnel: Tunnel, hasObtained: boolean): Promise<Step> {
    const observed = await observe(deps, tunnel)
    const { actions, verdict, renewing, requeueAfterMs } = planTunnel(observed)
    if (verdict && actions.some((action) => action.do === 'obtain')) {
      return obtain({ observed, actions, verdict, renewing, hasObtained })
    }
    const current = await apply(tunnel, actions)
    if (!verdict) return { outcome: { verdict: 'settled', reason: TunnelReason.Deleting } }
    if (actions.some((action) => action.do === 'assign')) return goingOn({ tunnel: current, hasObtained: false }, verdict)
    await deps.report(Tunnel, current, verdict, {
      ...{ ...findings(observed), ...changedAt(observed) },
      conditions: conditionsOf(observed, renewing),
    })
    return { outcome: { verdict: verdict.status === 'True' ? 'settled' : 'waiting', reason: verdict.reason, requeueAfterMs } }
  }

  async function obtain({ observed, actions, verdict, renewing, hasObtained }: Obtaining): Promise<Step> {
    const tunnel = renewing ? await announce(observed, verdict, renewing) : observed.tunnel
    if (!tunnel) return { outcome: GONE }
    try {
      // Otherwise an issuer of invalid certificates would be asked endlessly.
      if (hasObtained) throw new MooringError('certificate_unusable', 'the certificate that was signed is no good')
      return goingOn({ tunnel: await apply(tunnel, actions), hasObtained: true }, verdict)
    } catch (error) {
      return { outcome: await failed({ ...observed, tunnel }, verdict, error) }
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

interface Obtaining {
  readonly observed: Observed
  readonly actions: readonly Action[]
  readonly verdict: Verdict
  readonly renewing: Verdict | undefined
  readonly hasObtained: boolean
}

interface Step {
  /** Input of the next step; undefined when no step follows. */
  readonly next?: { readonly tunnel: Tunnel; readonly hasObtained: boolean }
  readonly outcome: Outcome
}

const goingOn = (next: NonNullable<Step['next']>, { reason }: Verdict): Step => ({
  next,
  outcome: { verdict: 'waiting', reason },
})
