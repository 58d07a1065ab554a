import { z } from 'zod'
import { type AnyRoute, route } from '../../http/route.ts'
import { ApiError } from '../../http/errors.ts'
import { retryLater } from '../../instances/instance-verdict.ts'
import { connectCommands } from '../tunnel-commands.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { isServed } from '../tunnel-view.ts'

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
export function getTunnelConnect(deps: TunnelDeps): AnyRoute {
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
