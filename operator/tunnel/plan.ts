import { FINALIZER } from '../../crds/names.ts'
import { type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { notReady, ready, type Verdict } from '../../store/conditions.ts'
import { certificateName, hostOf, urlOf } from './resources.ts'

/** A certificate as its Secret has it. Times in milliseconds since the epoch. */
export interface HeldCertificate {
  readonly issuer: string
  readonly obtainedAt: number
  readonly expiresAt: number
  /** Two thirds of its lifetime, with some jitter. */
  readonly renewAt: number
  /** Whether it is for these names, and from the issuer that signs now. */
  readonly fits: boolean
}

/** All that a decision may depend on, read once by observe.ts. */
export interface World {
  readonly tunnel: Tunnel
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Whether a Region has its `regionId`. */
  readonly region: boolean
  /** The endpoint assigned earlier; it stays for life, even when inactive. */
  readonly assigned: TunnelEndpoint | undefined
  /** Active endpoints of the tunnel's region, fewest tunnels first, then by name. */
  readonly candidates: readonly TunnelEndpoint[]
  readonly certificate: HeldCertificate | undefined
}

/** What to do, in order. Each is a step after which a crash is harmless. */
export type Action =
  | { readonly do: 'add-finalizer' | 'expire' | 'forget-certificate' | 'release' }
  /** Draws a hostname, and records it with the endpoint before anything uses either. */
  | { readonly do: 'assign'; readonly endpoint: TunnelEndpoint }
  /** Has a certificate signed, and keeps it. */
  | { readonly do: 'obtain'; readonly endpoint: TunnelEndpoint; readonly name: string }

export interface Plan {
  readonly actions: readonly Action[]
  /** What the status will say; undefined when there is none to write. */
  readonly verdict?: Verdict | undefined
  readonly requeueAfterMs?: number | undefined
}

const DAY_MS = 86_400_000

/**
 * Decides what a tunnel needs. Pure: each branch is a row in plan.test.ts.
 *
 *     created ──► hostname and endpoint in status ──► certificate ──► Ready
 *     valid ──two thirds of its lifetime──► obtained anew, valid all the while
 *     deleted ──► certificate forgotten ──► gone, and with it the hostname
 */
export function planTunnel(world: World): Plan {
  const { tunnel, now } = world
  if (tunnel.metadata.deletionTimestamp !== undefined) return planDeletion(tunnel)
  const expiresInMs = tunnel.spec.expiresAt === undefined ? Infinity : Date.parse(tunnel.spec.expiresAt) - now
  if (expiresInMs <= 0) return { actions: [{ do: 'expire' }] }
  const plan = planLiving(world)
  const again = Math.min(expiresInMs, plan.requeueAfterMs ?? Infinity)
  return {
    ...plan,
    actions: isGuarded(tunnel) ? plan.actions : [{ do: 'add-finalizer' }, ...plan.actions],
    requeueAfterMs: Number.isFinite(again) ? Math.max(1, Math.min(again, DAY_MS)) : undefined,
  }
}

const isGuarded = ({ metadata }: Tunnel): boolean => metadata.finalizers?.includes(FINALIZER) === true

function planDeletion(tunnel: Tunnel): Plan {
  return { actions: isGuarded(tunnel) ? [{ do: 'forget-certificate' }, { do: 'release' }] : [] }
}

function planLiving(world: World): Plan {
  const { tunnel, assigned, candidates, region } = world
  const { hostname, endpointRef } = tunnel.status ?? {}
  if (endpointRef && hostname !== undefined) {
    if (assigned) return planCertificate(world, assigned)
    return wait(TunnelReason.EndpointMissing, `its endpoint ${endpointRef.name} is gone`)
  }
  const [endpoint] = candidates
  if (endpoint)
    return {
      actions: [{ do: 'assign', endpoint }],
      verdict: notReady(TunnelReason.DrawingHostname, 'its hostname is being drawn'),
    }
  if (!region) return wait(TunnelReason.UnknownRegion, `there is no region ${tunnel.spec.regionId}`)
  return wait(TunnelReason.NoActiveEndpoint, `region ${tunnel.spec.regionId} has no active endpoint`)
}

const wait = (reason: string, message: string): Plan => ({ actions: [], verdict: notReady(reason, message) })

function planCertificate({ tunnel, certificate, now }: World, endpoint: TunnelEndpoint): Plan {
  const isGood = certificate?.fits === true && certificate.expiresAt > now
  const assigned = ready(TunnelReason.Assigned, urlOf(endpoint, hostnameOf(tunnel)))
  if (isGood && certificate.renewAt > now) return { actions: [], verdict: assigned, requeueAfterMs: certificate.renewAt - now }
  const obtaining = notReady(
    TunnelReason.ObtainingCertificate,
    `a certificate for ${hostOf(endpoint, hostnameOf(tunnel))} is being obtained`,
  )
  const verdict = isGood ? assigned : obtaining
  // One that failed is tried again when its status says, not with each change.
  const next = Date.parse(tunnel.status?.certificate?.nextAttemptAt ?? '')
  if (next > now) return { actions: [], verdict, requeueAfterMs: next - now }
  return { actions: [{ do: 'obtain', endpoint, name: certificateName(endpoint, hostnameOf(tunnel)) }], verdict }
}

const hostnameOf = (tunnel: Tunnel): string => tunnel.status?.hostname ?? ''
