import type { TunnelReason } from '../../crds/tunnel.ts'
import { EndpointReason } from '../../crds/tunnel-endpoint.ts'
import { notReady, type Verdict } from '../../store/conditions.ts'

/**
 * Of an endpoint whose certificates nobody here signs, and of a tunnel on it that has none: its reason is one of EndpointReason and of
 * TunnelReason. The installation's own issuer is always there.
 */
export const ISSUER_MISSING: Verdict = notReady(
  EndpointReason.IssuerMissing satisfies typeof TunnelReason.IssuerMissing,
  'this installation has no ACME issuer: no certificate can be had',
)
