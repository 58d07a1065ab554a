import { annotations } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import type { Patch } from '../../store/port.ts'
import { conditionOf } from '../../store/conditions.ts'
import { withinBudget } from '../budget.ts'
import { type AnyRoute, route } from '../route.ts'
import { PatchTunnelBody } from '../tunnel-body.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, tunnelMustStay, TunnelParams } from '../tunnel-lookup.ts'

const NEEDS = [{ verb: 'patch', resource: 'tunnels' }] as const

/** How long an answer waits for the operator to have taken note. */
const SETTLE_MS = 2_000

/** The merge patch of the resource that a body means. */
function tunnelPatch({ name, config }: PatchTunnelBody, updatedAt: string): Patch {
  return {
    metadata: { annotations: { [annotations.updatedAt]: updatedAt } },
    spec: { ...(name !== undefined && { displayName: name }), ...(config && { config }) },
  }
}

/** Whether it has this change and its status says so: nothing is about to move its resourceVersion, which is one to come back with. */
function isSettled(tunnel: Tunnel, { metadata: { uid, generation } }: Tunnel, updatedAt: string): boolean {
  const { metadata } = tunnel
  if (metadata.uid !== uid || (metadata.annotations?.[annotations.updatedAt] ?? '') < updatedAt) return false
  return (conditionOf(tunnel, 'Ready')?.observedGeneration ?? 0) >= generation
}

/** `PATCH …/tunnels/{t}`: in force at once; what it forbids is ended. */
export function patchTunnel(deps: TunnelDeps): AnyRoute {
  const { store, tunnels, audit, now } = deps
  const find = createTunnelLookup(deps)
  return route({
    method: 'patch',
    path: TUNNEL_PATH,
    on: ['shared'],
    id: 'patchTunnel',
    summary: 'Rename a tunnel or change its settings, without a reconnect.',
    description: 'A JSON merge patch (RFC 7396): lists are replaced whole, null puts a default back.',
    conditional: true,
    params: TunnelParams,
    body: PatchTunnelBody,
    replies: { 200: TunnelData },
    async handle({ principal, params, body, ifMatch, requestId, sourceIp }) {
      const { tunnel: before, scope } = await find(principal, params, NEEDS)
      tunnelMustStay(before)
      const { metadata } = before
      const updatedAt = now().toISOString()
      const after = await store.mergePatch(Tunnel, metadata, tunnelPatch(body, updatedAt), {
        uid: metadata.uid,
        resourceVersion: ifMatch,
      })
      await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const settled = await withinBudget(SETTLE_MS, (signal) =>
        tunnels.waitFor(metadata, (found) => (found && isSettled(found, after, updatedAt) ? found : undefined), signal),
      )
      return deps.answer(200, settled ?? after, scope)
    },
  })
}
