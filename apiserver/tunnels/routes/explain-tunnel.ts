import { z } from 'zod'
import {
  explain,
  type Explanation,
  LOGIN_CHECKS,
  METHOD_MAX,
  methodRejection,
  REQUEST_CHECKS,
  CHALLENGE_PATH,
} from '../../../shared/tunnel-decisions.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { createPasswordLookup } from '../ssh-passwords.ts'
import { IpAddress } from '../../journal/journal-schemas.ts'
import { addressList } from '../../../crds/formats/address-list.ts'
import type { Tunnel } from '../../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'

const Body = z
  .object({
    sourceIp: IpAddress.optional().describe('Address of the visitor.'),
    scheme: z.enum(['http', 'https']).optional().describe('Default: https.'),
    method: z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be an HTTP method')
      .max(METHOD_MAX)
      .optional()
      .describe('Default: GET.'),
    path: z
      .string()
      .regex(/^\/[!"$-~]*$/, 'must begin with / and contain only printable ASCII without blanks and #')
      .max(2_048)
      .optional()
      .describe('Default: /.'),
    ssh: z
      .object({ sourceIp: IpAddress.describe('Address of the client.'), authMethod: z.enum(['key', 'token']) })
      .optional()
      .describe('SSH login to explain instead of a request.'),
  })
  .refine(({ sourceIp, ssh }) => (sourceIp === undefined) !== (ssh === undefined), {
    path: ['sourceIp'],
    error: 'is required without ssh, and excluded with it',
    when: ({ issues }) => issues.length === 0,
  })
  .superRefine(({ ssh, ...request }, context) => {
    if (ssh === undefined) return
    for (const name of ['scheme', 'method', 'path'] as const) {
      if (request[name] !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: 'applies to a request, not to a login' })
    }
  })
  .meta({
    id: 'ExplainTunnel',
    oneOf: [
      { required: ['sourceIp'], not: { required: ['ssh'] } },
      { required: ['ssh'], not: { anyOf: ['sourceIp', 'scheme', 'method', 'path'].map((field) => ({ required: [field] })) } },
    ],
    examples: [{ sourceIp: '203.0.113.7', path: '/' }, { ssh: { sourceIp: '203.0.113.7', authMethod: 'key' } }],
  })

const ExplanationView = z
  .object({
    steps: z.array(z.object({ check: z.string(), verdict: z.enum(['pass', 'stop']), detail: z.string() })),
    answer: z.object({
      status: z.int().nullable().describe('Null: the backend answers.'),
      reason: z.string().nullable(),
    }),
  })
  .meta({ id: 'Explanation' })

/** `POST …/tunnels/{t}/explain`: explains the edge's decision about a request or a login without sending one (docs/api.md, "Explain"). */
export function explainTunnel(deps: TunnelDeps): AnyRoute {
  const { endpoints, presenceOf } = deps
  const { livePasswordsOf } = createPasswordLookup(deps)
  const find = createTunnelLookup(deps)
  return route({
    method: 'post',
    path: `${TUNNEL_PATH}/explain`,
    on: ['shared'],
    id: 'explainTunnel',
    summary: 'Explain step by step how the edge would decide about a request or a login.',
    params: TunnelParams,
    body: Body,
    replies: { 200: ExplanationView },
    async handle({ principal, params, body }) {
      const { tunnel } = await find(principal, params)
      const presenceIn = await presenceOf([tunnel])
      const state = {
        endpoint: tunnel.status?.endpointRef && endpoints.get({ name: tunnel.status.endpointRef.name }),
        sessions: presenceIn(tunnel).sessions,
        livePasswords: livePasswordsOf(tunnel).length,
      }
      const { sourceIp = '', scheme = 'https', method = 'GET', path = '/', ssh } = body
      const data = ssh ? explainLogin(tunnel, state, ssh) : explainRequest(tunnel, state, { sourceIp, scheme, method, path })
      return { status: 200, data: { steps: [...data.steps], answer: data.answer } }
    },
  })
}

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

/** Path of the ACME challenge that the edges answer for a tunnel; undefined when there is none. */
function challengeOf({ status }: Tunnel): string | undefined {
  const token = status?.certificate?.acme?.token
  return token === undefined ? undefined : `${CHALLENGE_PATH}${token}`
}

/** Explains the edge's decision about a request with the edge's own decision functions. Pure. */
function explainRequest(tunnel: Tunnel, { endpoint, sessions }: TunnelState, asked: AskedRequest): Explanation {
  const host = `${tunnel.status?.hostname ?? ''}.${endpoint?.spec.domain ?? ''}`
  return explain(REQUEST_CHECKS, {
    malformed: methodRejection(asked.method),
    scheme: asked.scheme,
    serverName: asked.scheme === 'https' ? host : undefined,
    host,
    method: asked.method,
    path: asked.path,
    sourceIp: asked.sourceIp,
    challengeKnown: asked.path === challengeOf(tunnel),
    tunnel: { config: tunnel.spec.config, ingress: addressList(tunnel.spec.config.ingressIPWhitelist) },
    overload: 'none',
    upstream: sessions > 0 ? 'unknown' : 'offline',
  })
}

/** Explains the edge's decision about a login with the edge's own decision functions. Pure. */
function explainLogin(tunnel: Tunnel, { sessions, livePasswords }: TunnelState, asked: AskedLogin): Explanation {
  return explain(LOGIN_CHECKS, {
    tunnel: { config: tunnel.spec.config, sshSources: addressList(tunnel.spec.config.sshIPWhitelist) },
    sourceIp: asked.sourceIp,
    authMethod: asked.authMethod,
    livePasswords,
    sessions,
    maxSessions: SESSIONS_MAX,
  })
}
