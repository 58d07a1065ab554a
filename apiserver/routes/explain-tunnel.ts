import { isIP } from 'node:net'
import { z } from 'zod'
import { type AnyRoute, route } from '../route.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { explainLogin, explainRequest } from '../tunnel-explanation.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'

const Address = z
  .string()
  .max(45)
  .refine((text) => isIP(text) !== 0, 'must be an IP address')

const Body = z
  .object({
    sourceIp: Address.optional().describe('Address of the visitor.'),
    scheme: z.enum(['http', 'https']).optional().describe('https, when absent.'),
    method: z.string().min(1).max(32).optional().describe('GET, when absent.'),
    path: z.string().regex(/^\//, 'must begin with /').max(2_048).optional().describe('/, when absent.'),
    ssh: z
      .object({ sourceIp: Address.describe('Address of the client.'), authMethod: z.enum(['key', 'token']) })
      .optional()
      .describe('A login instead of a request.'),
  })
  .refine(({ sourceIp, ssh }) => (sourceIp === undefined) !== (ssh === undefined), {
    path: ['sourceIp'],
    error: 'must be given, or ssh in its place',
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ id: 'ExplainTunnel', examples: [{ sourceIp: '203.0.113.7', path: '/' }] })

const Explanation = z
  .object({
    steps: z.array(z.object({ check: z.string(), verdict: z.enum(['pass', 'stop']), detail: z.string() })),
    answer: z.object({
      status: z.int().nullable().describe('Null: the backend answers.'),
      reason: z.string().nullable(),
    }),
  })
  .meta({ id: 'Explanation' })

/** `POST …/tunnels/{t}/explain`: what the edge would do, and why; nothing is sent. */
export function explainTunnel(deps: TunnelDeps): AnyRoute {
  const { endpoints, tunnelPasswords, journal, now } = deps
  const find = createTunnelLookup(deps)
  return route({
    method: 'post',
    path: `${TUNNEL_PATH}/explain`,
    on: ['shared'],
    id: 'explainTunnel',
    summary: 'Say what the edge would decide about a request or a login, step by step.',
    params: TunnelParams,
    body: Body,
    replies: { 200: Explanation },
    async handle({ principal, params, body }) {
      const { tunnel, scope } = await find(principal, params)
      const { uid, name } = tunnel.metadata
      const at = now().getTime()
      const standing = {
        endpoint: tunnel.status?.endpointRef && endpoints.get({ name: tunnel.status.endpointRef.name }),
        sessions: (await journal.presence([uid])).get(uid)?.sessions ?? 0,
        livePasswords: tunnelPasswords
          .list({ namespace: scope.namespace })
          .filter(({ spec }) => spec.tunnelRef.name === name && Date.parse(spec.expiresAt) > at).length,
      }
      const { sourceIp = '', scheme = 'https', method = 'GET', path = '/', ssh } = body
      const data = ssh
        ? explainLogin(tunnel, standing, ssh)
        : explainRequest(tunnel, standing, { sourceIp, scheme, method, path })
      return { status: 200, data: { steps: [...data.steps], answer: data.answer } }
    },
  })
}
