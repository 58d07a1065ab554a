import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { EDGE_PORTS } from '../../shared/edge-objects.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import type { Key } from '../../store/port.ts'
import type { FreshCluster } from './fresh-cluster.ts'
import { timed } from './statistics.ts'

/** Documentation address (RFC 5737): an allow list with it alone rejects all visitors. */
const NOBODY = ['192.0.2.1']

/** Sends a request over plain HTTP to an edge. @returns the status */
async function statusAt(address: string, host: string): Promise<number> {
  const asked = request({ host: address, port: EDGE_PORTS.http, headers: { Host: host }, agent: false }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.destroy()
  return answer.statusCode ?? 0
}

/**
 * Makes a tunnel reject and admit all visitors in turn. The tunnel redirects to HTTPS, so that no request waits for a client.
 * @returns the milliseconds from each change until the slowest edge applies it
 */
export async function timesToForce(
  { store, clients }: FreshCluster,
  tunnel: Key & { readonly host: string },
  rounds: number,
): Promise<readonly number[]> {
  const { host, ...key } = tunnel
  const addresses = '{.items[*].status.podIP}'
  const selector = ['--namespace', SYSTEM_NAMESPACE, '--selector', 'app.kubernetes.io/name=mooring-edge']
  const edges = (await clients.kubectl(['get', 'pods', ...selector, '--output', `jsonpath=${addresses}`])).split(' ')
  const apply = async (ingressIPWhitelist: readonly string[], status: number) => {
    await store.mergePatch(Tunnel, key, { spec: { config: { httpsOnly: true, ingressIPWhitelist } } })
    await Promise.all(
      edges.map(async (edge) => {
        while ((await statusAt(edge, host)) !== status) continue
      }),
    )
  }
  await apply([], 301)
  const times: number[] = []
  for (let round = 0; round < rounds; round++)
    times.push(await timed(() => (round % 2 === 0 ? apply(NOBODY, 403) : apply([], 301))))
  return times
}
