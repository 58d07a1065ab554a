import { MooringError } from '../../crds/errors.ts'
import { Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { notReady, type Verdict } from '../../store/conditions.ts'
import { keyOf, keyToString } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'
import { stepDone } from '../../store/steps.ts'
import type { Findings, Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { perform } from './apply.ts'
import { observe, type ObserveDeps } from './observe.ts'
import { type Action, type HeldCertificate, planTunnel, type World } from './plan.ts'
import { certificateName } from './resources.ts'

export interface TunnelReconcilerDeps extends ObserveDeps {
  readonly report: Report
}

/** Between tries of a certificate that could not be had. */
const AGAIN_MS = 60_000
const MESSAGE_MAX = 1024

type Certificate = NonNullable<NonNullable<Tunnel['status']>['certificate']>

/** Observe, plan, apply, report; again from the start after what changes the world, until nothing is left to do. */
export function createTunnelReconciler(deps: TunnelReconcilerDeps): (key: Key) => Promise<Outcome> {
  /** Carries the actions out and gives the tunnel as it is then. */
  async function apply(tunnel: Tunnel, actions: readonly Action[]): Promise<Tunnel> {
    let current = tunnel
    for (const action of actions) {
      current = (await perform(deps, current, action)) ?? current
      stepDone(`tunnel.${action.do}`, keyToString(keyOf(tunnel)))
    }
    return current
  }

  /** One that is still good serves on; what is said of it is only that it could not be renewed. */
  async function failed(world: World, planned: Verdict, error: unknown): Promise<Outcome> {
    const { tunnel, now } = world
    const lastError = (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_MAX)
    const verdict = isGood(world) ? planned : notReady(TunnelReason.ObtainingCertificate, lastError)
    await deps.report(Tunnel, tunnel, verdict, {
      certificate: {
        ...tunnel.status?.certificate,
        ...{ status: stateAfterFailure(world), lastError, nextAttemptAt: at(now + AGAIN_MS) },
      },
    })
    return { verdict: 'waiting', reason: verdict.reason, requeueAfterMs: AGAIN_MS }
  }

  async function step(tunnel: Tunnel, hasObtained: boolean): Promise<Step> {
    const world = await observe(deps, tunnel)
    const { actions, verdict, requeueAfterMs } = planTunnel(world)
    const isObtaining = actions.some((action) => action.do === 'obtain')
    let current: Tunnel
    try {
      // Else an authority that signs what is no good would be asked without end.
      if (isObtaining && hasObtained) throw new MooringError('certificate_unusable', 'the certificate that was signed is no good')
      current = await apply(tunnel, actions)
    } catch (error) {
      if (!isObtaining || !verdict) throw error
      return { outcome: await failed(world, verdict, error) }
    }
    if (!verdict) return { outcome: { verdict: 'settled', reason: TunnelReason.Deleting } }
    const moved = isObtaining || actions.some((action) => action.do === 'assign')
    if (moved)
      return { next: { tunnel: current, hasObtained: isObtaining }, outcome: { verdict: 'waiting', reason: verdict.reason } }
    await deps.report(Tunnel, current, verdict, findings(world))
    return { outcome: { verdict: verdict.status === 'True' ? 'settled' : 'waiting', reason: verdict.reason, requeueAfterMs } }
  }

  return async function reconcileTunnel(key) {
    let tunnel = deps.tunnels.get(key)
    if (!tunnel) return { verdict: 'settled', reason: 'Gone' }
    let hasObtained = false
    // To assign and to obtain are each done once, so this ends.
    for (;;) {
      const { next, outcome } = await step(tunnel, hasObtained)
      if (!next) return outcome
      ;({ tunnel, hasObtained } = next)
    }
  }
}

interface Step {
  /** What to go on with; undefined: it is done for now. */
  readonly next?: { readonly tunnel: Tunnel; readonly hasObtained: boolean }
  readonly outcome: Outcome
}

/** What the status says beside its condition (contract, "Tunnel certificate"). */
function findings(world: World): Findings<typeof Tunnel> {
  const { tunnel, assigned, certificate, now } = world
  const { hostname, certificate: before } = tunnel.status ?? {}
  // Of one that is no good, the attempt that failed has said all.
  if (!assigned || hostname === undefined || !certificate || !isGood(world)) return {}
  const status = certificateStatus(certificate, certificateName(assigned, hostname))
  // A failed renewal stays in view until it is made good; a merge patch takes out what is null.
  const isMended = certificate.renewAt > now && hasFailure(before)
  return { certificate: isMended ? ({ ...status, ...NO_FAILURE } as unknown as Certificate) : status }
}

const hasFailure = (before: Certificate | undefined): boolean => (before?.lastError ?? before?.nextAttemptAt) !== undefined

const NO_FAILURE = { lastError: null, nextAttemptAt: null }

const isGood = ({ certificate, now }: World): boolean => certificate?.fits === true && certificate.expiresAt > now

function stateAfterFailure(world: World): Certificate['status'] {
  if (isGood(world)) return 'valid'
  return world.certificate?.fits === true ? 'expired' : 'failed'
}

const at = (ms: number): string => new Date(ms).toISOString()

const certificateStatus = ({ issuer, obtainedAt, expiresAt }: HeldCertificate, domain: string): Certificate => ({
  ...{ status: 'valid', domain, issuer },
  ...{ obtainedAt: at(obtainedAt), expiresAt: at(expiresAt) },
})
