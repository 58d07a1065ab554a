import { annotations, FINALIZER } from '../../crds/names.ts'
import { RenewingReason, type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import type { AcmeSettings, TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf, notReady, ready, type Decision } from '../../store/conditions.ts'
import { type Full, fullMessage } from '../quota/quota.ts'
import type { Progress } from '../acme/acme.ts'
import { hasLiteralsOfApi } from './header-values.ts'
import { ISSUER_MISSING, certificateName, hostOf, urlOf } from './resources.ts'

/** Certificate in its Secret. Times in milliseconds since the epoch. */
export interface HeldCertificate {
  readonly issuer: string
  readonly obtainedAt: number
  readonly expiresAt: number
  /** Two thirds of its lifetime, with some jitter. */
  readonly renewAt: number
  /** Whether it is for the desired names, from the present issuer, with its key, and labelled for its endpoint's edges. */
  readonly fits: boolean
  /** Directory of the CA and identifier of the certificate, of one that was obtained by ACME. */
  readonly acme?: { readonly directory: string; readonly id: string | undefined } | undefined
}

/** Observed state that a decision may depend on, read once by observe.ts. */
export interface Observed {
  readonly tunnel: Tunnel
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Reason why its Namespace is not a tenant's; undefined when it is. */
  readonly refused?: string | undefined
  /** Set when the quota of its namespace does not admit the tunnel. */
  readonly full: Full | undefined
  /** Whether a Region has its `regionId`. */
  readonly region: boolean
  /** Endpoint assigned earlier. It is permanent, even when inactive. */
  readonly assigned: TunnelEndpoint | undefined
  /** Whether an issuer for its certificate is configured. */
  readonly isSigned: boolean
  /** Active endpoints of the tunnel's region with edges and an issuer, fewest tunnels first, then by name. */
  readonly candidates: readonly TunnelEndpoint[]
  /** Certificate; undefined without an issuer: the status counts then, see {@link leftMs}. */
  readonly certificate: HeldCertificate | undefined
  /** Order for its certificate by ACME; undefined when there is none. */
  readonly order: Progress | undefined
  /** Hostname in the annotation of a tunnel without a hostname; undefined without an annotation. */
  readonly kept: KeptHostname | undefined
}

/** Hostname that a restored tunnel gets back, or the reason why not. */
export type KeptHostname =
  { readonly hostname: string; readonly refused?: undefined } | { readonly refused: Decision; readonly hostname?: undefined }

/** Actions in order. A crash after any of them is harmless. */
export type Action =
  | { readonly do: 'add-finalizer' | 'expire' | 'forget-certificate' | 'release' }
  /** Moves header values that an earlier version of the REST API put into the spec into a Secret. */
  | { readonly do: 'move-headers' }
  /** Writes the hostname, generated if necessary, into the annotation, with the finalizer; before that, reports a rejected annotation. */
  | { readonly do: 'mark'; readonly refused: Decision | undefined }
  /** Removes the endpoint from the status, so that no edge serves the tunnel. It keeps its hostname. */
  | { readonly do: 'withdraw' }
  /** Records hostname and endpoint in the status before either is used. */
  | { readonly do: 'assign'; readonly endpoint: TunnelEndpoint }
  /** Obtains a certificate and stores it. */
  | { readonly do: 'obtain'; readonly endpoint: TunnelEndpoint; readonly name: string }
  /** Begins or continues the order for a certificate. */
  | { readonly do: 'order'; readonly endpoint: TunnelEndpoint; readonly name: string; readonly held: HeldCertificate | undefined }
  /** Stores the certificate that an order has led to, and ends the order. */
  | { readonly do: 'install'; readonly endpoint: TunnelEndpoint }

export interface Plan {
  readonly actions: readonly Action[]
  /** Ready condition; undefined when there is no status to write. */
  readonly decision?: Decision | undefined
  /** Condition `Renewing`, set while a valid certificate is obtained anew. */
  readonly renewing?: Decision | undefined
  readonly requeueAfterMs?: number | undefined
  /** Settings of the CA at which the certificate is revoked before the actions. */
  readonly revokeAt?: AcmeSettings | undefined
}

/** Maximum time in milliseconds for which a revocation holds up a deletion. */
export const REVOCATION_MS = 600_000

const DAY_MS = 86_400_000
/** Interval of attempts to obtain a certificate after a failure. */
export const AGAIN_MS = 60_000

/**
 * Decides what a tunnel needs. Pure: each branch is a row in plan.test.ts.
 *
 *     created ──► hostname marked ──► hostname and endpoint in status ──► certificate ──► Ready
 *     created above the quota ──another tunnel is deleted──► the same
 *     its Namespace is not a tenant's (any more) ──► not served ──labelled──► the same, with the same hostname
 *     restored, with its mark ──────► the same, with the same hostname
 *     valid ──two thirds of its lifetime──► obtained anew, valid all the while, condition Renewing
 *     by ACME: no certificate ──► order ──issued──► installed; due for renewal ──► the same, valid all the while
 *     deleted ──► certificate revoked, if desired ──► certificate deleted ──► gone, and its hostname with it
 */
export function planTunnel(observed: Observed): Plan {
  const { tunnel, now } = observed
  if (tunnel.metadata.deletionTimestamp !== undefined) return planDeletion(observed)
  const expiresInMs = tunnel.spec.expiresAt === undefined ? Infinity : Date.parse(tunnel.spec.expiresAt) - now
  if (expiresInMs <= 0) return { actions: [{ do: 'expire' }] }
  const blocked = planBlocked(observed)
  const plan = blocked ?? planLiving(observed)
  const again = Math.min(expiresInMs, plan.requeueAfterMs ?? Infinity)
  return {
    ...plan,
    actions: blocked ? blocked.actions : [...preparation(observed, plan), ...plan.actions, ...moves(observed)],
    requeueAfterMs: Number.isFinite(again) ? Math.max(1, Math.min(again, DAY_MS)) : undefined,
  }
}

/** Plan of a tunnel that is not admitted: only its status is written. */
function planBlocked({ refused, full, tunnel }: Observed): Plan | undefined {
  if (refused !== undefined) {
    const actions = tunnel.status?.endpointRef ? [{ do: 'withdraw' } as const] : []
    return { actions, decision: notReady(TunnelReason.NoAccess, refused) }
  }
  return full && wait(TunnelReason.QuotaExceeded, fullMessage(full, 'tunnels'))
}

/** The last action: the reconcile that its write causes continues with the new spec. */
const moves = ({ tunnel }: Observed): readonly Action[] => (hasLiteralsOfApi(tunnel) ? [{ do: 'move-headers' }] : [])

/** Writes to the metadata that precede all other actions: at most one. */
function preparation({ tunnel, kept }: Observed, { actions }: Plan): readonly Action[] {
  const { status, metadata } = tunnel
  const isDrawn = status?.hostname !== undefined
  const isAssigned = actions.some((action) => action.do === 'assign')
  // An invalid mark on a tunnel with a hostname stays: a client that keeps the manifest in a repository would write it again.
  const isUnmarked = isDrawn ? actions.length === 0 && metadata.annotations?.[annotations.hostname] === undefined : isAssigned
  if (isUnmarked && kept?.hostname === undefined) return [{ do: 'mark', refused: kept?.refused }]
  return isGuarded(tunnel) ? [] : [{ do: 'add-finalizer' }]
}

const isGuarded = ({ metadata }: Tunnel): boolean => metadata.finalizers?.includes(FINALIZER) === true

function planDeletion(observed: Observed): Plan {
  if (!isGuarded(observed.tunnel)) return { actions: [] }
  const isOver = conditionOf(observed.tunnel, 'Ready')?.reason === TunnelReason.CertificateNotRevoked
  return {
    actions: [{ do: 'forget-certificate' }, { do: 'release' }],
    revokeAt: isOver ? undefined : revocationAt(observed),
  }
}

/** Settings of the CA at which the certificate of a deleted tunnel is revoked; undefined when it is not. */
function revocationAt({ tunnel, assigned, isSigned }: Observed): AcmeSettings | undefined {
  if (!assigned || !isSigned || tunnel.status?.hostname === undefined) return undefined
  const { issuer, certificates, acme } = assigned.spec
  return issuer === 'acme' && certificates === 'perTunnel' && acme?.revokeOnDelete ? acme : undefined
}

function planLiving(observed: Observed): Plan {
  const { tunnel, assigned, candidates, region } = observed
  const { hostname, endpointRef, url } = tunnel.status ?? {}
  if (endpointRef && hostname !== undefined) {
    if (assigned) return planCertificate(observed, assigned)
    return wait(TunnelReason.EndpointMissing, `its endpoint ${endpointRef.name} is gone`)
  }
  // A tunnel whose endpoint was withdrawn gets that one again.
  const endpoint = candidates.find((each) => hostname !== undefined && urlOf(each, hostname) === url) ?? candidates[0]
  if (endpoint)
    return {
      actions: [{ do: 'assign', endpoint }],
      decision: notReady(TunnelReason.DrawingHostname, 'its hostname is being assigned'),
    }
  if (!region) return wait(TunnelReason.UnknownRegion, `there is no region ${tunnel.spec.regionId}`)
  return wait(TunnelReason.NoActiveEndpoint, `region ${tunnel.spec.regionId} has no active endpoint with edges`)
}

const wait = (reason: string, message: string): Plan => ({ actions: [], decision: notReady(reason, message) })

/** Whether the tunnel has a certificate that visitors accept. */
export const isGood = ({ certificate, now }: Pick<Observed, 'certificate' | 'now'>): boolean =>
  certificate?.fits === true && certificate.expiresAt > now

function planCertificate(observed: Observed, endpoint: TunnelEndpoint): Plan {
  const { tunnel, certificate, now } = observed
  const hostname = hostnameOf(tunnel)
  if (endpoint.spec.tlsSecretName !== undefined) return planGiven(observed, endpoint)
  if (!observed.isSigned) return planUnsigned(observed, endpoint)
  if (endpoint.spec.issuer === 'acme') return planOrder(observed, endpoint)
  if (!isGood(observed)) {
    const message = `a certificate for ${hostOf(endpoint, hostname)} is being obtained`
    return planAttempt(observed, endpoint, { decision: notReady(TunnelReason.ObtainingCertificate, message) })
  }
  const decision = servedDecision(endpoint, hostname)
  const inMs = (certificate?.renewAt ?? now) - now
  if (inMs > 0) return { actions: [], decision, requeueAfterMs: inMs }
  return planAttempt(observed, endpoint, { decision, renewing: renewal(tunnel.status?.certificate?.lastError) })
}

/** Plans with the administrator's own certificate, which the endpoint's reconciler takes over. */
function planGiven(observed: Observed, endpoint: TunnelEndpoint): Plan {
  const { certificate, now } = observed
  const name = endpoint.spec.tlsSecretName
  const message = endpoint.status?.certificate?.lastError ?? `the certificate of the Secret ${name} is being read`
  if (!certificate || !isGood(observed)) return wait(TunnelReason.ObtainingCertificate, message)
  return {
    actions: [],
    decision: servedDecision(endpoint, hostnameOf(observed.tunnel)),
    requeueAfterMs: certificate.expiresAt - now,
  }
}

/** Plans the order for a certificate by ACME, which is made elsewhere and may take days. */
function planOrder(observed: Observed, endpoint: TunnelEndpoint): Plan {
  const { tunnel, certificate, order, now } = observed
  const hostname = hostnameOf(tunnel)
  const held = isGood(observed) ? certificate : undefined
  const decision = held ? servedDecision(endpoint, hostname) : ordering(endpoint, hostname, order)
  if (order?.state === 'issued') return { actions: [{ do: 'install', endpoint }], decision }
  const inMs = held ? held.renewAt - now : 0
  if (inMs > 0 && !order) return { actions: [], decision, requeueAfterMs: inMs }
  const action = { do: 'order', endpoint, name: certificateName(endpoint, hostname), held } as const
  return { actions: [action], decision, renewing: held && renewal(order?.lastError) }
}

const ordering = (endpoint: TunnelEndpoint, hostname: string, order: Progress | undefined): Decision =>
  notReady(
    TunnelReason.ObtainingCertificate,
    order?.lastError ?? `a certificate for ${hostOf(endpoint, hostname)} is being obtained`,
  )

/** Plans without an issuer: the present certificate serves until it expires. No attempt is made until the endpoint changes. */
function planUnsigned(observed: Observed, endpoint: TunnelEndpoint): Plan {
  const inMs = leftMs(observed, endpoint)
  if (!(inMs > 0)) return { actions: [], decision: ISSUER_MISSING }
  return { actions: [], decision: servedDecision(endpoint, hostnameOf(observed.tunnel)), requeueAfterMs: inMs }
}

/** Milliseconds until the certificate in the status expires; 0 or less when it is not valid. */
export function leftMs({ tunnel, now }: Pick<Observed, 'tunnel' | 'now'>, endpoint: TunnelEndpoint): number {
  const { status, domain, expiresAt = '' } = tunnel.status?.certificate ?? {}
  if (status !== 'valid' || domain !== certificateName(endpoint, hostnameOf(tunnel))) return 0
  return Date.parse(expiresAt) - now
}

function servedDecision(endpoint: TunnelEndpoint, hostname: string): Decision {
  if (isServed(endpoint)) return ready(TunnelReason.Assigned, urlOf(endpoint, hostname))
  return notReady(TunnelReason.EndpointNotServed, `no edge serves ${endpoint.spec.domain}`)
}

/** Plans an attempt. After a failure, the next one is made at the time in the status, whatever changes meanwhile. */
function planAttempt({ tunnel, now }: Observed, endpoint: TunnelEndpoint, said: Pick<Plan, 'decision' | 'renewing'>): Plan {
  const inMs = Date.parse(tunnel.status?.certificate?.nextAttemptAt ?? '') - now
  // A longer wait than that means that the clock was set back.
  if (inMs > 0 && inMs <= AGAIN_MS) return { actions: [], ...said, requeueAfterMs: inMs }
  return { actions: [{ do: 'obtain', endpoint, name: certificateName(endpoint, hostnameOf(tunnel)) }], ...said }
}

/** Condition `Renewing` of a valid certificate that is obtained anew. */
export function renewal(lastError: string | undefined): Decision {
  if (lastError !== undefined) return { status: 'True', reason: RenewingReason.AttemptFailed, message: lastError }
  return { status: 'True', reason: RenewingReason.Due, message: 'two thirds of the lifetime of its certificate are over' }
}

/** Whether the endpoint has edges. The administrator, or the process that served it, may have removed them. */
const isServed = ({ spec }: TunnelEndpoint): boolean => spec.replicas > 0

const hostnameOf = (tunnel: Tunnel): string => tunnel.status?.hostname ?? ''
