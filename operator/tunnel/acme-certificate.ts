import { createHash, X509Certificate } from 'node:crypto'
import { annotations, slugsOf, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Secret } from '../../crds/core.ts'
import type { Tunnel, TunnelCertificate } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Progress } from '../acme/acme.ts'
import { issuerOf } from '../acme/issued-certificate.ts'
import type { OrderRequest } from '../acme/orders.ts'
import type { Followed } from '../acme/renewal-info.ts'
import { isKeyOf } from '../certificates/local-ca.ts'
import { keyPairIn } from '../secret-data.ts'
import { renewalTime } from './certificate-issuer.ts'
import type { HeldCertificate, Observed } from './plan.ts'
import { certificateKey, certificateName } from './resources.ts'

/** Time after which the CA's renewal information is followed: a wrong clock would otherwise renew a certificate again and again. */
const AFTER_ISSUE_MS = 3_600_000

interface About {
  readonly endpoint: TunnelEndpoint
  readonly hostname: string
  /** Time of the renewal that the CA has named for a certificate. */
  readonly renewAt: (id: string) => number | undefined
}

/** Certificate of a Secret that was obtained by ACME, from whichever CA. @throws Error when it cannot be read */
export function heldByAcme(secret: Secret, about: About): HeldCertificate {
  const { certificate: pem, key } = keyPairIn(secret)
  const certificate = new X509Certificate(pem)
  const {
    [annotations.acmeDirectory]: directory,
    [annotations.acmeId]: id,
    [annotations.obtainedAt]: said,
  } = secret.metadata.annotations ?? {}
  const [begin, expiresAt] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()]
  const at = Date.parse(said ?? '')
  const name = certificateName(about.endpoint, about.hostname)
  return scheduled(
    {
      issuer: issuerOf(certificate),
      obtainedAt: at >= begin && at < expiresAt ? at : begin,
      expiresAt,
      fits: directory !== undefined && isKeyOf(certificate, key) && certificate.checkHost(name) !== undefined,
      acme: { directory: directory ?? '', id },
    },
    about,
  )
}

/** Certificate as the tunnel's status has it; undefined when the Secret must be read. */
export function statedByAcme({ status }: Tunnel, about: About & { readonly now: number }): HeldCertificate | undefined {
  const said = status?.certificate
  return said && isStated(said, about) ? believed(said, about) : undefined
}

function believed(said: TunnelCertificate, about: About & { readonly now: number }): HeldCertificate | undefined {
  const { issuer = '', obtainedAt = '', expiresAt = '', acme: { directory = '', id, token } = {} } = said
  if (token !== undefined) return undefined
  const times = { obtainedAt: Date.parse(obtainedAt), expiresAt: Date.parse(expiresAt) }
  const held = scheduled({ ...times, issuer, fits: true, acme: { directory, id } }, about)
  return held.renewAt > about.now ? held : undefined
}

/** Adds the time of the renewal: at once at another CA, else at the earlier of two thirds of the lifetime and what the CA says. */
function scheduled(held: Omit<HeldCertificate, 'renewAt'>, { endpoint, hostname, renewAt }: About): HeldCertificate {
  const { directory = '', id } = held.acme ?? {}
  if (directory !== endpoint.spec.acme?.directoryUrl) return { ...held, renewAt: 0 }
  const suggested = id === undefined ? undefined : renewAt(id)
  const byCa = suggested === undefined ? Infinity : Math.max(suggested, held.obtainedAt + AFTER_ISSUE_MS)
  return { ...held, renewAt: Math.min(renewalTime(held, spreadOf(endpoint, hostname)), byCa) }
}

/** Whether a status is about the valid certificate of an endpoint. That of an earlier endpoint of the name was deleted with that. */
function isStated({ status, domain, obtainedAt = '' }: TunnelCertificate, { endpoint, hostname }: About): boolean {
  if (status !== 'valid' || domain !== certificateName(endpoint, hostname)) return false
  const { spec, metadata } = endpoint
  return spec.certificates !== 'wildcard' || Date.parse(obtainedAt) >= Date.parse(metadata.creationTimestamp)
}

/** Text by which renewals are spread over time. Tunnels with a shared certificate renew it at the same time. */
const spreadOf = ({ spec }: TunnelEndpoint, hostname: string): string =>
  spec.certificates === 'wildcard' ? createHash('sha256').update(spec.domain).digest('hex') : hostname

/** Namespace under which an order takes its turn: that of the tunnel. Orders of shared certificates belong to no tenant. */
export const turnOf = ({ metadata }: Tunnel, endpoint: TunnelEndpoint | undefined): string =>
  endpoint?.spec.certificates === 'wildcard' ? SYSTEM_NAMESPACE : (metadata.namespace ?? '')

interface Ordered {
  readonly endpoint: TunnelEndpoint
  readonly name: string
  /** Good certificate that is renewed. */
  readonly held: HeldCertificate | undefined
  /** Whether the installation has several organizations. */
  readonly isShared: boolean
}

/** Certificate of a tunnel whose renewal information is asked for; undefined when the CA has none. Pure. */
export function followedOf({
  tunnel,
  assigned,
  certificate,
}: Pick<Observed, 'tunnel' | 'assigned' | 'certificate'>): Followed | undefined {
  const settings = assigned?.spec.acme
  if (!settings || certificate?.acme?.directory !== settings.directoryUrl) return undefined
  const { id } = certificate.acme
  return id === undefined
    ? undefined
    : { certificate: certificateKey(assigned, tunnel.status?.hostname ?? '').name, id, settings }
}

/** Request for the certificate of a tunnel; undefined when its endpoint has no settings of ACME. Pure. */
export function orderFor(tunnel: Tunnel, { endpoint, name, held, isShared }: Ordered): OrderRequest | undefined {
  const { acme: settings, publicHttpPort, publicHttpsPort } = endpoint.spec
  if (!settings) return undefined
  const namespace = turnOf(tunnel, endpoint)
  const isOwn = endpoint.spec.certificates !== 'wildcard'
  const { directory, id } = held?.acme ?? {}
  return {
    namespace,
    settings,
    publicHttpPort,
    publicHttpsPort,
    identifier: name,
    endpoint: endpoint.metadata.name,
    certificate: certificateKey(endpoint, tunnel.status?.hostname ?? '').name,
    organization: slugsOf(namespace).organization,
    isShared: isShared && isOwn,
    isRenewal: held !== undefined,
    isRenewalOfCa: directory === settings.directoryUrl,
    replaces: directory === settings.directoryUrl ? id : undefined,
  }
}

const time = (ms: number): string => new Date(ms).toISOString()

/** Status of a certificate by ACME: the good one, if any, and how far the order is. Fields may be undefined. */
export function acmeStatus(input: StatusInput): TunnelCertificate {
  const { good, order, before, domain } = input
  const next = order?.nextAttemptAt
  const progress = { lastError: order?.lastError, nextAttemptAt: next === undefined ? undefined : time(next) }
  const token = order?.token
  if (good) {
    const times = { obtainedAt: time(good.obtainedAt), expiresAt: time(good.expiresAt) }
    return { status: 'valid', domain, issuer: good.issuer, ...times, ...progress, acme: { ...good.acme, token } }
  }
  const former = { issuer: before?.issuer, obtainedAt: before?.obtainedAt, expiresAt: before?.expiresAt }
  return { status: stateOf(input), domain, ...former, ...progress, acme: { directory: order?.directory, token } }
}

/** State of a certificate that is not good. */
function stateOf({ order, before, now }: StatusInput): TunnelCertificate['status'] {
  const isExpired = Date.parse(before?.expiresAt ?? '') <= now
  if (order?.state === 'failed') return isExpired ? 'expired' : 'failed'
  return order?.state === 'pending' ? 'pending' : 'obtaining'
}

interface StatusInput {
  readonly good: HeldCertificate | undefined
  readonly order: Progress | undefined
  readonly before: TunnelCertificate | undefined
  readonly domain: string
  readonly now: number
}
