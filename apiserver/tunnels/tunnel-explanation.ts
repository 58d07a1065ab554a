import { addressList } from '../../crds/formats/address-list.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { explain, type Explanation, LOGIN_CHECKS, methodStop, REQUEST_CHECKS } from '../../shared/tunnel-decisions.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** Hypothetical request of a visitor. */
export interface AskedRequest {
  readonly sourceIp: string
  readonly scheme: 'http' | 'https'
  readonly method: string
  readonly path: string
}

/** Hypothetical SSH login of a client. */
export interface AskedLogin {
  readonly sourceIp: string
  readonly authMethod: 'key' | 'token'
}

/** Observed state of a tunnel that the decision depends on. */
export interface TunnelState {
  readonly endpoint: TunnelEndpoint | undefined
  readonly sessions: number
  readonly livePasswords: number
}

/** Maximum of sessions of a tunnel (docs/limits.md, "Edge: SSH"). */
const SESSIONS_MAX = 10

/** Explains the edge's decision about a request with the edge's own decision functions. Pure. */
export function explainRequest(tunnel: Tunnel, { endpoint, sessions }: TunnelState, asked: AskedRequest): Explanation {
  const host = `${tunnel.status?.hostname ?? ''}.${endpoint?.spec.domain ?? ''}`
  return explain(REQUEST_CHECKS, {
    malformed: methodStop(asked.method),
    ...{ scheme: asked.scheme, serverName: asked.scheme === 'https' ? host : undefined, host },
    ...{ method: asked.method, path: asked.path, sourceIp: asked.sourceIp },
    challengeKnown: false,
    tunnel: { config: tunnel.spec.config, ingress: addressList(tunnel.spec.config.ingressIPWhitelist) },
    overload: 'none',
    upstream: sessions > 0 ? 'unknown' : 'offline',
  })
}

/** Explains the edge's decision about a login with the edge's own decision functions. Pure. */
export function explainLogin(tunnel: Tunnel, { sessions, livePasswords }: TunnelState, asked: AskedLogin): Explanation {
  return explain(LOGIN_CHECKS, {
    tunnel: { config: tunnel.spec.config, sshSources: addressList(tunnel.spec.config.sshIPWhitelist) },
    ...{ sourceIp: asked.sourceIp, authMethod: asked.authMethod },
    ...{ livePasswords, sessions, maxSessions: SESSIONS_MAX },
  })
}
