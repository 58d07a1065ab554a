import type { TunnelCertificate } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { HeldCertificate } from './plan.ts'

/**
 * Certificate of the administrator's own (`spec.tlsSecretName`), as the endpoint's status has it; undefined when none is valid. It is never
 * due for renewal: the administrator replaces it.
 */
export function heldByEndpoint({ status }: TunnelEndpoint): HeldCertificate | undefined {
  const { status: state, issuer = '', obtainedAt = '', expiresAt = '' } = status?.certificate ?? {}
  if (state !== 'valid') return undefined
  const times = { obtainedAt: Date.parse(obtainedAt), expiresAt: Date.parse(expiresAt) }
  return { ...times, issuer, renewAt: times.expiresAt, fits: true }
}

/**
 * Status of the certificate of a tunnel whose endpoint has a certificate of the administrator's own. Fields may be undefined. Pure.
 * @param now milliseconds since the epoch
 */
export function givenStatus({ spec, status }: TunnelEndpoint, now: number): TunnelCertificate {
  const domain = `*.${spec.domain}`
  if (!status?.certificate) return { status: 'obtaining', domain }
  const { status: state, ...about } = status.certificate
  // The endpoint's status may be some seconds behind.
  const isExpired = Date.parse(about.expiresAt ?? '') <= now
  return { ...about, domain, status: isExpired ? 'expired' : state }
}
