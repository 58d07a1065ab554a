import { z } from 'zod'
import { type JournalWiring, createJournalDeps } from '../../journal/journal-deps.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { createTunnelDeps, type TunnelWiring, TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelPassword, deleteTunnelPassword, listTunnelPasswords } from './passwords.ts'
import { createTunnel } from './create-tunnel.ts'
import { deleteTunnel, patchTunnel } from './change-tunnel.ts'
import { explainTunnel } from './explain-tunnel.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { listOf, NamespaceParams } from '../../tenancy/tenancy-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams, TUNNELS_PATH } from '../tunnel-lookup.ts'
import {
  CertificateEventView,
  certificateHistoryView,
  CertificateView,
  certificateView,
  isServed,
  TunnelView,
} from '../tunnel-view.ts'
import { ApiError } from '../../http/errors.ts'
import { retryLater } from '../../instances/instance-waits.ts'
import { connectCommands } from '../tunnel-commands.ts'
import { getTunnelStats, listTunnelConnections, listTunnelRequests } from '../../journal/tunnel-logs.ts'
import type { WebhookWiring } from '../../webhooks/webhook-deps.ts'
import { webhookRoutes } from '../../webhooks/webhook-routes.ts'
import { listAuditEntries, listOrganizationAudit } from '../../journal/audit-log.ts'

const ROUTES = [
  ...[listTunnels, createTunnel, getTunnel, patchTunnel, deleteTunnel],
  ...[createTunnelPassword, listTunnelPasswords, deleteTunnelPassword],
  ...[getTunnelCertificate, getTunnelConnect, explainTunnel],
]

export type TunnelRoutesWiring = TunnelWiring & JournalWiring & WebhookWiring

/** Returns the routes of tunnels (docs/api.md, "Tunnels"). */
export function tunnelRoutes(wiring: TunnelRoutesWiring): AnyRoute[] {
  const deps = createTunnelDeps(wiring)
  return [...ROUTES.map((make) => make(deps)), ...journalRoutes(wiring), ...webhookRoutes(wiring)]
}

/** Returns the routes that read the journal (docs/api.md, "Request log and statistics", "Audit log"). */
export function journalRoutes(wiring: JournalWiring): AnyRoute[] {
  const deps = createJournalDeps(wiring)
  return [listTunnelConnections, listTunnelRequests, getTunnelStats, listAuditEntries, listOrganizationAudit].map((make) =>
    make(deps),
  )
}

/** `GET …/tunnels`: newest first. */
function listTunnels({ scopes, tunnels, show }: TunnelDeps): AnyRoute {
  return route({
    method: 'get',
    path: TUNNELS_PATH,
    on: ['shared'],
    id: 'listTunnels',
    summary: 'List the tunnels of a namespace.',
    params: NamespaceParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('tunnels', TunnelView) },
    async handle({ principal, params, query }) {
      const scope = await scopes.ofPath(principal, params)
      const { namespace } = scope
      await scopes.require(principal, { verb: 'list', resource: 'tunnels', namespace })
      const { items, nextCursor } = page(tunnels.list({ namespace }), query, resourceKey)
      return { status: 200, data: { tunnels: await show(items, { principal, scope }), nextCursor } }
    },
  })
}

/** `GET …/tunnels/{t}` */
function getTunnel(deps: TunnelDeps): AnyRoute {
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: TUNNEL_PATH,
    on: ['shared'],
    id: 'getTunnel',
    summary: 'Get one tunnel.',
    params: TunnelParams,
    replies: { 200: TunnelData },
    async handle({ principal, params }) {
      const { tunnel, scope } = await find(principal, params)
      return deps.answer(200, tunnel, { principal, scope })
    },
  })
}

/** `GET …/tunnels/{t}/certificate` */
function getTunnelCertificate(deps: TunnelDeps): AnyRoute {
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/certificate`,
    on: ['shared'],
    id: 'getTunnelCertificate',
    summary: 'Get the state of the certificate of a tunnel, and its last events.',
    params: TunnelParams,
    replies: { 200: z.object({ certificate: CertificateView, history: z.array(CertificateEventView) }) },
    async handle({ principal, params }) {
      const { tunnel } = await find(principal, params)
      return { status: 200, data: { certificate: certificateView(tunnel), history: [...certificateHistoryView(tunnel)] } }
    },
  })
}

const ConnectView = z
  .object({
    ssh: z.string().describe('Plain command; it exits when the connection ends.'),
    loop: z.string().describe('Command that reconnects whenever the connection ends.'),
    autossh: z.string(),
    systemd: z.string().describe('Unit for ~/.config/systemd/user.'),
    knownHosts: z.array(z.string()).describe('Lines for known_hosts.'),
  })
  .meta({ id: 'Connect' })

/** `GET …/tunnels/{t}/connect` */
function getTunnelConnect(deps: TunnelDeps): AnyRoute {
  const { endpoints } = deps
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/connect`,
    on: ['shared'],
    id: 'getTunnelConnect',
    summary: 'Get the commands that connect a tunnel, ready to copy.',
    params: TunnelParams,
    replies: { 200: z.object({ connect: ConnectView }) },
    async handle({ principal, params }) {
      const { tunnel } = await find(principal, params)
      const { hostname, endpointRef } = tunnel.status ?? {}
      const endpoint = endpointRef && endpoints.get({ name: endpointRef.name })
      if (hostname === undefined || !endpoint) throw retryLater('this tunnel has no hostname yet; try again in 5 s')
      if (!isServed(endpoint))
        throw new ApiError('conflict', `no edge serves ${endpoint.spec.domain} any more; create another tunnel`)
      return { status: 200, data: { connect: connectCommands({ hostname, endpoint, config: tunnel.spec.config }) } }
    },
  })
}
