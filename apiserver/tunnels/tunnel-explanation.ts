import { addressList } from '../../crds/formats/address-list.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { explain, type Explanation, LOGIN_CHECKS, methodRejection, REQUEST_CHECKS } from '../../shared/tunnel-decisions.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** A request that somebody would send. */
export interface AskedRequest {
  readonly sourceIp: string
  readonly scheme: 'http' | 'https'
  readonly method: string
  readonly path: string
}

/** An SSH login that somebody would try. */
export interface AskedLogin {
  readonly sourceIp: string
  readonly authMethod: 'key' | 'token'
}

/** What of it is known now. */
export interface Standing {
  readonly endpoint: TunnelEndpoint | undefined
  readonly sessions: number
  readonly livePasswords: number
}

/** Surface, section 2, "Quotas". */
const SESSIONS_MAX = 10

/** What the edge would decide about a request, by the very functions that it decides with. Pure. */
export function explainRequest(tunnel: Tunnel, { endpoint, sessions }: Standing, asked: AskedRequest): Explanation {
  const host = `${tunnel.status?.hostname ?? ''}.${endpoint?.spec.domain ?? ''}`
  return explain(REQUEST_CHECKS, {
    malformed: methodRejection(asked.method),
    ...{ scheme: asked.scheme, serverName: asked.scheme === 'https' ? host : undefined, host },
    ...{ method: asked.method, path: asked.path, sourceIp: asked.sourceIp },
    challengeKnown: false,
    tunnel: { config: tunnel.spec.config, ingress: addressList(tunnel.spec.config.ingressIPWhitelist) },
    overload: 'none',
    upstream: sessions > 0 ? 'unknown' : 'offline',
  })
}

/** The same of a login. Pure. */
export function explainLogin(tunnel: Tunnel, { sessions, livePasswords }: Standing, asked: AskedLogin): Explanation {
  return explain(LOGIN_CHECKS, {
    tunnel: { config: tunnel.spec.config, sshSources: addressList(tunnel.spec.config.sshIPWhitelist) },
    ...{ sourceIp: asked.sourceIp, authMethod: asked.authMethod },
    ...{ livePasswords, sessions, maxSessions: SESSIONS_MAX },
  })
}
