import { z } from 'zod'
import { annotations } from '../../../crds/names.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import type { Patch } from '../../../store/port.ts'
import { settled, whenGone, withinBudget } from '../../resources/cache-waits.ts'
import { changeSpec, requestDeletion } from '../../resources/conditional-writes.ts'
import { type AnyRoute, fixedFields, route } from '../../http/route.ts'
import { checkConfigPatch, PatchTunnelBody, requireAllowedTarget } from '../tunnel-body.ts'
import { hasHeaderValues, type HeaderChange } from '../header-values.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, requireTunnelNotDeleting, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { TunnelView } from '../tunnel-view.ts'

const PATCH_NEEDS = [{ verb: 'patch', resource: 'tunnels' }] as const

const updatedAtOf = ({ metadata }: Tunnel): string => metadata.annotations?.[annotations.updatedAt] ?? ''

const ANOTHER = 'create another tunnel'
const FIXED = fixedFields(TunnelView, PatchTunnelBody, {
  regionId: ANOTHER,
  organization: ANOTHER,
  namespace: ANOTHER,
  ttl: 'create another tunnel with it',
  expiresAt: 'create another tunnel with a ttl',
})

/** `PATCH …/tunnels/{t}`: takes effect at once and ends sessions and requests that it forbids. */
export function patchTunnel(deps: TunnelDeps): AnyRoute {
  const { store, tunnels, headers, audit, now } = deps
  const find = createTunnelLookup(deps)

  return route({
    method: 'patch',
    path: TUNNEL_PATH,
    on: ['shared'],
    id: 'patchTunnel',
    summary: 'Rename a tunnel or change its settings, without a reconnect.',
    description:
      'A JSON merge patch (RFC 7396): lists are replaced as a whole, null restores a default. A patch without a change writes nothing.',
    conditional: true,
    params: TunnelParams,
    body: PatchTunnelBody,
    fixed: FIXED,
    checkBody: checkConfigPatch,
    replies: { 200: TunnelData },
    async handle({ principal, params, body, ifMatch, requestId, sourceIp }) {
      const { tunnel: found, scope } = await find(principal, params, PATCH_NEEDS)
      requireTunnelNotDeleting(found)
      const marks = { [annotations.updatedAt]: now().toISOString() }
      const change = headers.change()
      const specOf = (current: Tunnel) => specPatch(body, current, change)
      const changed = await changeSpec(store, Tunnel, { found, ifMatch, specOf, marks })
      const { after } = changed
      if (changed.isChanged) {
        const [before, written] = await Promise.all([changed.before, after].map(headers.withValues))
        await audit.record({ principal, requestId, sourceIp, action: 'update', before, after: written })
        await change.finish(after)
      }
      const isLater = (seen: Tunnel) => updatedAtOf(seen) >= updatedAtOf(after) && hasHeaderValues(seen)
      const shown = await settled(tunnels, after, isLater)
      return deps.answer(200, shown, { principal, scope })
    },
  })
}

/** Returns the merge patch of the spec for a body. @throws ApiError `invalid_request`, `conflict` */
async function specPatch({ name, config }: PatchTunnelBody, now: Tunnel, change: HeaderChange): Promise<Patch> {
  if (config) requireAllowedTarget(now.spec.config, config)
  const items = config?.liveHeaderModifications
  const stored = items && { liveHeaderModifications: await change.store(now, items) }
  return {
    ...(name !== undefined && { displayName: name }),
    ...(config !== undefined && { config: config && { ...config, ...stored } }),
  }
}

const DELETE_NEEDS = [{ verb: 'delete', resource: 'tunnels' }] as const
const BUDGET_MS = 30_000

/** `DELETE …/tunnels/{t}`: 200 once the tunnel is gone and its hostname released, 202 while in progress. A repeated request joins the wait. */
export function deleteTunnel(deps: TunnelDeps): AnyRoute {
  const { store, tunnels, headers, audit } = deps
  const find = createTunnelLookup(deps)

  return route({
    method: 'delete',
    path: TUNNEL_PATH,
    on: ['shared'],
    id: 'deleteTunnel',
    summary: 'Delete a tunnel permanently; its sessions end and its hostname is released.',
    conditional: true,
    params: TunnelParams,
    replies: { 200: z.object({}), 202: TunnelData },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const { tunnel, scope } = await find(principal, params, DELETE_NEEDS)
      const before = await headers.withValues(tunnel)
      if (await requestDeletion(store, Tunnel, tunnel, ifMatch)) {
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before })
      }
      const gone = await withinBudget(BUDGET_MS, (signal) => whenGone(tunnels, tunnel, signal))
      if (gone) return { status: 200, data: {} }
      return { ...(await deps.answer(200, tunnel, { principal, scope })), status: 202 }
    },
  })
}
