import { annotations, FINALIZER } from '../../crds/names.ts'
import { RenewingReason, type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { notReady, ready, type Verdict } from '../../store/conditions.ts'
import { type Full, fullMessage } from '../quota/quota.ts'
import { ISSUER_MISSING } from './issuer-missing.ts'
import { certificateName, hostOf, urlOf } from './resources.ts'

/** A certificate as its Secret has it. Times in milliseconds since the epoch. */
export interface HeldCertificate {
  readonly issuer: string
  readonly obtainedAt: number
  readonly expiresAt: number
  /** Two thirds of its lifetime, with some jitter. */
  readonly renewAt: number
  /** Whether it is for these names, from the issuer that signs now, with its key, and for the edges of its endpoint to take. */
  readonly fits: boolean
}

/** All that a decision may depend on, read once by observe.ts. */
export interface Observed {
  readonly tunnel: Tunnel
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Set when its namespace is full, and it is none of those that have their place. */
  readonly full: Full | undefined
  /** Whether a Region has its `regionId`. */
  readonly region: boolean
  /** The endpoint assigned earlier; it stays for life, even when inactive. */
  readonly assigned: TunnelEndpoint | undefined
  /** Whether there is somebody who signs its certificates. */
  readonly isSigned: boolean
  /** Active endpoints of the tunnel's region that somebody serves and somebody signs for, fewest tunnels first, then by name. */
  readonly candidates: readonly TunnelEndpoint[]
  /** Undefined where nobody signs: then what the status says of it counts, see {@link leftMs}. */
  readonly certificate: HeldCertificate | undefined
  /** What the annotation says of one that has no hostname yet; undefined when it has none. */
  readonly kept: KeptHostname | undefined
}

/** A hostname that a tunnel had before it was lost, or why it does not get that one. */
export type KeptHostname =
  { readonly hostname: string; readonly refused?: undefined } | { readonly refused: Verdict; readonly hostname?: undefined }

/** What to do, in order. Each is a step after which a crash is harmless. */
export type Action =
  | { readonly do: 'add-finalizer' | 'expire' | 'forget-certificate' | 'release' }
  /** Writes its hostname, drawn if need be, into its annotation, with the finalizer; before that, why it is not the one that was there. */
  | { readonly do: 'mark'; readonly refused: Verdict | undefined }
  /** Records the hostname with the endpoint before anything uses either. */
  | { readonly do: 'assign'; readonly endpoint: TunnelEndpoint }
  /** Has a certificate signed, and keeps it. */
  | { readonly do: 'obtain'; readonly endpoint: TunnelEndpoint; readonly name: string }

export interface Plan {
  readonly actions: readonly Action[]
  /** What the status will say; undefined when there is none to write. */
  readonly verdict?: Verdict | undefined
  /** What the status will say of a valid certificate that is obtained anew; undefined when none is. */
  readonly renewing?: Verdict | undefined
  readonly requeueAfterMs?: number | undefined
}

const DAY_MS = 86_400_000
/** Between tries of a certificate that could not be had. */
export const AGAIN_MS = 60_000

/**
 * Decides what a tunnel needs. Pure: each branch is a row in plan.test.ts.
 *
 *     created ──► hostname marked ──► hostname and endpoint in status ──► certificate ──► Ready
 *     created, its namespace full ──another goes──► the same
 *     restored, with its mark ──────► the same hostname
 *     valid ──two thirds of its lifetime──► obtained anew, valid all the while, condition Renewing
 *     deleted ──► certificate forgotten ──► gone, and with it the hostname
 */
export function planTunnel(observed: Observed): Plan {
  const { tunnel, now } = observed
  if (tunnel.metadata.deletionTimestamp !== undefined) return planDeletion(tunnel)
  const expiresInMs = tunnel.spec.expiresAt === undefined ? Infinity : Date.parse(tunnel.spec.expiresAt) - now
  if (expiresInMs <= 0) return { actions: [{ do: 'expire' }] }
  const plan = observed.full ? wait(TunnelReason.QuotaExceeded, fullMessage(observed.full, 'tunnels')) : planLiving(observed)
  const again = Math.min(expiresInMs, plan.requeueAfterMs ?? Infinity)
  return {
    ...plan,
    // One that waits for room has nothing yet: no write but to say so.
    actions: observed.full ? [] : [...preparation(observed, plan), ...plan.actions],
    requeueAfterMs: Number.isFinite(again) ? Math.max(1, Math.min(again, DAY_MS)) : undefined,
  }
}

/** What its metadata is to have before anything else: one write at the most. */
function preparation({ tunnel, kept }: Observed, { actions }: Plan): readonly Action[] {
  const { status, metadata } = tunnel
  const isDrawn = status?.hostname !== undefined
  const isAssigned = actions.some((action) => action.do === 'assign')
  // A mark that somebody has written over stays: who keeps the tunnel in a repository would write it over again.
  const isUnmarked = isDrawn ? actions.length === 0 && metadata.annotations?.[annotations.hostname] === undefined : isAssigned
  if (isUnmarked && kept?.hostname === undefined) return [{ do: 'mark', refused: kept?.refused }]
  return isGuarded(tunnel) ? [] : [{ do: 'add-finalizer' }]
}

const isGuarded = ({ metadata }: Tunnel): boolean => metadata.finalizers?.includes(FINALIZER) === true

function planDeletion(tunnel: Tunnel): Plan {
  return { actions: isGuarded(tunnel) ? [{ do: 'forget-certificate' }, { do: 'release' }] : [] }
}

function planLiving(observed: Observed): Plan {
  const { tunnel, assigned, candidates, region } = observed
  const { hostname, endpointRef } = tunnel.status ?? {}
  if (endpointRef && hostname !== undefined) {
    if (assigned) return planCertificate(observed, assigned)
    return wait(TunnelReason.EndpointMissing, `its endpoint ${endpointRef.name} is gone`)
  }
  const [endpoint] = candidates
  if (endpoint)
    return {
      actions: [{ do: 'assign', endpoint }],
      verdict: notReady(TunnelReason.DrawingHostname, 'its hostname is being drawn'),
    }
  if (!region) return wait(TunnelReason.UnknownRegion, `there is no region ${tunnel.spec.regionId}`)
  return wait(TunnelReason.NoActiveEndpoint, `region ${tunnel.spec.regionId} has no active endpoint with edges`)
}

const wait = (reason: string, message: string): Plan => ({ actions: [], verdict: notReady(reason, message) })

/** Whether it has a certificate that visitors take. */
export const isGood = ({ certificate, now }: Pick<Observed, 'certificate' | 'now'>): boolean =>
  certificate?.fits === true && certificate.expiresAt > now

function planCertificate(observed: Observed, endpoint: TunnelEndpoint): Plan {
  const { tunnel, certificate, now } = observed
  const hostname = hostnameOf(tunnel)
  if (!observed.isSigned) return planUnsigned(observed, endpoint)
  if (!isGood(observed)) {
    const message = `a certificate for ${hostOf(endpoint, hostname)} is being obtained`
    return planAttempt(observed, endpoint, { verdict: notReady(TunnelReason.ObtainingCertificate, message) })
  }
  const verdict = servedVerdict(endpoint, hostname)
  const inMs = (certificate?.renewAt ?? now) - now
  if (inMs > 0) return { actions: [], verdict, requeueAfterMs: inMs }
  return planAttempt(observed, endpoint, { verdict, renewing: renewal(tunnel.status?.certificate?.lastError) })
}

/** Nobody signs: what it has serves on until it ends. Nothing is tried: whoever changes its endpoint has it looked at again. */
function planUnsigned(observed: Observed, endpoint: TunnelEndpoint): Plan {
  const inMs = leftMs(observed, endpoint)
  if (!(inMs > 0)) return { actions: [], verdict: ISSUER_MISSING }
  return { actions: [], verdict: servedVerdict(endpoint, hostnameOf(observed.tunnel)), requeueAfterMs: inMs }
}

/** Milliseconds for which the certificate that its status speaks of is good; none above 0 when it is not. */
export function leftMs({ tunnel, now }: Pick<Observed, 'tunnel' | 'now'>, endpoint: TunnelEndpoint): number {
  const { status, domain, expiresAt = '' } = tunnel.status?.certificate ?? {}
  if (status !== 'valid' || domain !== certificateName(endpoint, hostnameOf(tunnel))) return 0
  return Date.parse(expiresAt) - now
}

function servedVerdict(endpoint: TunnelEndpoint, hostname: string): Verdict {
  if (isServed(endpoint)) return ready(TunnelReason.Assigned, urlOf(endpoint, hostname))
  return notReady(TunnelReason.EndpointNotServed, `no edge serves ${endpoint.spec.domain}`)
}

/** One that failed is tried again when its status says, not with each change. */
function planAttempt({ tunnel, now }: Observed, endpoint: TunnelEndpoint, said: Pick<Plan, 'verdict' | 'renewing'>): Plan {
  const inMs = Date.parse(tunnel.status?.certificate?.nextAttemptAt ?? '') - now
  // None is put off for longer: the clock was set back since.
  if (inMs > 0 && inMs <= AGAIN_MS) return { actions: [], ...said, requeueAfterMs: inMs }
  return { actions: [{ do: 'obtain', endpoint, name: certificateName(endpoint, hostnameOf(tunnel)) }], ...said }
}

/** What is said of a valid certificate while it is obtained anew. */
export function renewal(lastError: string | undefined): Verdict {
  if (lastError !== undefined) return { status: 'True', reason: RenewingReason.AttemptFailed, message: lastError }
  return { status: 'True', reason: RenewingReason.Due, message: 'two thirds of the lifetime of its certificate are over' }
}

/** One without edges is left: by the administrator, or by the process that served its domain. */
const isServed = ({ spec }: TunnelEndpoint): boolean => spec.replicas > 0

const hostnameOf = (tunnel: Tunnel): string => tunnel.status?.hostname ?? ''
