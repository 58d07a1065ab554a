import { z } from 'zod'
import { type AnyRoute, route } from '../../http/route.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { CertificateView, certificateView } from '../tunnel-view.ts'

/** `GET …/tunnels/{t}/certificate` */
export function getTunnelCertificate(deps: TunnelDeps): AnyRoute {
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/certificate`,
    on: ['shared'],
    id: 'getTunnelCertificate',
    summary: 'Get the state of the certificate of a tunnel.',
    params: TunnelParams,
    replies: { 200: z.object({ certificate: CertificateView }) },
    async handle({ principal, params }) {
      const { tunnel } = await find(principal, params)
      return { status: 200, data: { certificate: certificateView(tunnel) } }
    },
  })
}
