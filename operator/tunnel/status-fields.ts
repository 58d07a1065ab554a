import type { Condition } from '../../crds/kind.ts'
import { ADDRESS_RULE } from '../../crds/formats/address-list.ts'
import { annotations } from '../../crds/names.ts'
import {
  ADDRESSES_USABLE,
  AddressesUsableReason,
  HEADERS_USABLE,
  KEYS_USABLE,
  KeysUsableReason,
  RENEWING,
  type Tunnel,
  type TunnelCertificate,
} from '../../crds/tunnel.ts'
import { brokenItems, KEY_RULE } from '../../crds/tunnel-config.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { type Decision, withCondition, withoutCondition } from '../../store/conditions.ts'
import type { StatusFields } from '../reporter.ts'
import { replacing } from '../../shared/merge-patch.ts'
import { acmeStatus } from './acme-certificate.ts'
import { givenStatus } from './given-certificate.ts'
import { withHistory } from './certificate-history.ts'
import { NOT_CONNECTED } from './presence.ts'
import { ISSUER_MISSING, certificateName, urlOf } from './resources.ts'
import { type HeldCertificate, isGood, leftMs, renewal, type Observed } from './plan.ts'

/** Conditions beside `Ready`. `headers`: condition about header values; null: there is none, undefined: it stays. */
export function conditionsOf(
  { tunnel, now }: Pick<Observed, 'tunnel' | 'now'>,
  renewing: Decision | undefined,
  headers?: Decision | null,
): readonly Condition[] {
  const stamp = { generation: tunnel.metadata.generation, now: new Date(now) }
  const decisions = {
    [RENEWING]: renewing,
    [KEYS_USABLE]: unusableKeys(tunnel),
    [ADDRESSES_USABLE]: unusableRanges(tunnel),
    ...(headers !== undefined && { [HEADERS_USABLE]: headers ?? undefined }),
  }
  return Object.entries(decisions).reduce(
    (conditions, [type, decision]) =>
      decision ? withCondition(conditions, decision, { type, ...stamp }) : withoutCondition(conditions, type),
    tunnel.status?.conditions ?? [],
  )
}

/** Condition about unusable SSH keys; undefined when all of them are valid. */
function unusableKeys({ spec }: Tunnel): Decision | undefined {
  const broken = brokenItems(KEY_RULE, spec.config.authorizedKeys)
  if (broken.length === 0) return undefined
  // The rule comes first, as long messages are cut.
  const which = broken.map((index) => `spec.config.authorizedKeys[${index}]`).join(', ')
  return {
    status: 'False',
    reason: KeysUsableReason.UnusableKey,
    message: `a key ${KEY_RULE.message}; no client can log in by ${which}`,
  }
}

const LISTS = ['sshIPWhitelist', 'ingressIPWhitelist'] as const

/** Condition about entries of allow lists that match no address; undefined when there are none. */
function unusableRanges({ spec }: Tunnel): Decision | undefined {
  const broken = LISTS.flatMap((list) =>
    spec.config[list].flatMap((entry, index) =>
      ADDRESS_RULE.holds(entry) ? [] : [`spec.config.${list}[${index}] ${ADDRESS_RULE.messageOf(entry)}`],
    ),
  )
  if (broken.length === 0) return undefined
  const message = `an entry matches no address: ${broken.join('; ')}`
  return { status: 'False', reason: AddressesUsableReason.UnusableRange, message }
}

/** Status fields beside the conditions (docs/api.md, "Tunnels"). */
export function statusFields(observed: Observed): StatusFields<typeof Tunnel> {
  return remembered(observed, presentFields(observed))
}

/** Adds the history of the certificate to status fields. */
function remembered({ tunnel, now }: Observed, fields: StatusFields<typeof Tunnel>): StatusFields<typeof Tunnel> {
  const { certificate } = fields
  return certificate ? { ...fields, certificate: withHistory(tunnel.status?.certificate, certificate, now) } : fields
}

function presentFields(observed: Observed): StatusFields<typeof Tunnel> {
  const { tunnel, assigned } = observed
  const address = addressFields(observed)
  const certificate = assigned && tunnel.status?.hostname !== undefined ? certificateField(observed, assigned) : undefined
  return certificate ? { ...address, certificate } : address
}

/** Status of the certificate; undefined when it stays. */
function certificateField(observed: Observed, assigned: TunnelEndpoint): TunnelCertificate | undefined {
  const { tunnel, now } = observed
  if (!observed.isSigned) return unsigned(observed, assigned)
  if (assigned.spec.tlsSecretName !== undefined) return replacing(tunnel.status?.certificate, givenStatus(assigned, now))
  return assigned.spec.issuer === 'acme' ? orderedCertificate(observed, assigned) : signedCertificate(observed, assigned)
}

/** Certificate of a tunnel whose endpoint uses the CA of the installation. */
function signedCertificate(observed: Observed, assigned: TunnelEndpoint): TunnelCertificate | undefined {
  const { tunnel, certificate, now } = observed
  const { hostname = '', certificate: before } = tunnel.status ?? {}
  // For an invalid certificate, the failed attempt has written the status already.
  if (!certificate || !isGood(observed)) return undefined
  const status = certificateStatus(certificate, certificateName(assigned, hostname))
  // A reported failure of the renewal stays until it succeeds; null removes it in a merge patch.
  const isMended = certificate.renewAt > now && hasFailure(before)
  return isMended ? ({ ...status, ...NO_FAILURE } as unknown as TunnelCertificate) : status
}

/** Certificate of a tunnel whose endpoint uses ACME. */
function orderedCertificate(observed: Observed, assigned: TunnelEndpoint): TunnelCertificate {
  const { tunnel, certificate, order, now } = observed
  const { hostname = '', certificate: before } = tunnel.status ?? {}
  const good = isGood(observed) ? certificate : undefined
  return replacing(before, acmeStatus({ good, order, before, now, domain: certificateName(assigned, hostname) }))
}

/** Endpoint and URL. The endpoint is permanent, but may be recreated with another domain. */
function addressFields({ tunnel, assigned }: Observed): StatusFields<typeof Tunnel> {
  const { hostname, endpointRef, connected } = tunnel.status ?? {}
  if (assigned) return hostname === undefined ? {} : { url: urlOf(assigned, hostname) }
  // No edge has a session of it any more, whatever the journal, which may be unavailable, has yet to learn.
  return endpointRef && connected ? NOT_CONNECTED : {}
}

/**
 * Time of the write of a generation that the status does not reflect yet; written with the first status for it, so it costs no extra write.
 * The REST API records it in an annotation. A write by kubectl has none: its time is that of this reconcile.
 */
export function changedAt({
  tunnel: { metadata, status },
  now,
}: Pick<Observed, 'tunnel' | 'now'>): Pick<StatusFields<typeof Tunnel>, 'updatedAt'> {
  const { generation } = metadata
  if (generation === 1 || status?.observedGeneration === generation) return {}
  const said = Date.parse(metadata.annotations?.[annotations.updatedAt] ?? '')
  const isNews = said > Date.parse(status?.updatedAt ?? metadata.creationTimestamp)
  return { updatedAt: at(isNews ? said : now) }
}

const hasFailure = (before: TunnelCertificate | undefined): boolean => (before?.lastError ?? before?.nextAttemptAt) !== undefined

const NO_FAILURE = { lastError: null, nextAttemptAt: null }

/** Status after a failed attempt to obtain a certificate. A valid certificate stays in use. */
export function failure(observed: Observed, lastError: string, nextAttemptAt: number): StatusFields<typeof Tunnel> {
  const good = isGood(observed)
  const status = good ? 'valid' : observed.certificate?.fits === true ? 'expired' : 'failed'
  return remembered(observed, {
    ...addressFields(observed),
    conditions: conditionsOf(observed, good ? renewal(lastError) : undefined),
    certificate: { ...observed.tunnel.status?.certificate, status, lastError, nextAttemptAt: at(nextAttemptAt) },
  })
}

const at = (ms: number): string => new Date(ms).toISOString()

/** Status without an issuer: the present certificate stays, and no attempt follows. */
function unsigned(observed: Observed, endpoint: TunnelEndpoint): TunnelCertificate {
  const before = observed.tunnel.status?.certificate
  const hasEnded = Date.parse(before?.expiresAt ?? '') <= observed.now
  const status = leftMs(observed, endpoint) > 0 ? 'valid' : hasEnded ? 'expired' : 'failed'
  const none = before?.nextAttemptAt !== undefined && { nextAttemptAt: null as unknown as string }
  return { ...before, status, lastError: ISSUER_MISSING.message, ...none }
}

const certificateStatus = ({ issuer, obtainedAt, expiresAt }: HeldCertificate, domain: string): TunnelCertificate => ({
  status: 'valid',
  domain,
  issuer,
  obtainedAt: at(obtainedAt),
  expiresAt: at(expiresAt),
})
