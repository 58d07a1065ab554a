import { annotations } from '../../../crds/names.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import type { Patch } from '../../../store/port.ts'
import { settled } from '../../resources/cache-waits.ts'
import { changeSpec } from '../../resources/change-spec.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { PatchTunnelBody } from '../tunnel-body.ts'
import { checkConfigPatch, requireAllowedTarget } from '../tunnel-config-checks.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, requireTunnelNotDeleting, TunnelParams } from '../tunnel-lookup.ts'

const NEEDS = [{ verb: 'patch', resource: 'tunnels' }] as const

/** Returns the merge patch of the spec for a body; `now` is the current spec. @throws ApiError `invalid_request` */
function specPatch({ name, config }: PatchTunnelBody, now: Tunnel['spec']): Patch {
  if (config) requireAllowedTarget(now.config, config)
  return { ...(name !== undefined && { displayName: name }), ...(config !== undefined && { config }) }
}

const updatedAtOf = ({ metadata }: Tunnel): string => metadata.annotations?.[annotations.updatedAt] ?? ''

/** `PATCH …/tunnels/{t}`: takes effect at once and ends sessions and requests that it forbids. */
export function patchTunnel(deps: TunnelDeps): AnyRoute {
  const { store, tunnels, audit, now } = deps
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
    checkBody: checkConfigPatch,
    replies: { 200: TunnelData },
    async handle({ principal, params, body, ifMatch, requestId, sourceIp }) {
      const { tunnel: found, scope } = await find(principal, params, NEEDS)
      requireTunnelNotDeleting(found)
      const marks = { [annotations.updatedAt]: now().toISOString() }
      const specOf = ({ spec }: Tunnel) => specPatch(body, spec)
      const { before, after, isChanged } = await changeSpec(store, Tunnel, { found, ifMatch, specOf, marks })
      if (isChanged) await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const shown = await settled(tunnels, after, (seen) => updatedAtOf(seen) >= updatedAtOf(after))
      return deps.answer(200, shown, { principal, scope })
    },
  })
}
