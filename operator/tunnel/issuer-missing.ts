import type { TunnelReason } from '../../crds/tunnel.ts'
import { EndpointReason } from '../../crds/tunnel-endpoint.ts'
import { notReady, type Decision } from '../../store/conditions.ts'

/**
 * Condition of an endpoint without a configured issuer, and of its tunnels without a certificate. Its reason is part of EndpointReason and
 * TunnelReason. The installation's own issuer is always configured.
 */
export const ISSUER_MISSING: Decision = notReady(
  EndpointReason.IssuerMissing satisfies typeof TunnelReason.IssuerMissing,
  'this installation has no ACME issuer: no certificate can be obtained',
)
