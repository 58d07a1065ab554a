import { expect } from 'vitest'
import {
  createTunnelDeps,
  type TunnelDeps,
  TUNNELS_PER_NAMESPACE,
  type TunnelWiring,
} from '../../../apiserver/tunnels/tunnel-deps.ts'
import { Region } from '../../../crds/region.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { createCacheSet } from '../../../store/cache-set.ts'

type Given = Pick<TunnelWiring, 'store' | 'scopes' | 'journal' | 'audit'>

/**
 * Opens the dependencies of the routes of tunnels. The caches are synced with the store, and follow it until the stack is
 * disposed.
 */
export async function openTunnelDeps(opened: AsyncDisposableStack, given: Given): Promise<TunnelDeps> {
  const set = createCacheSet({ store: given.store, onError: (error) => expect.fail(String(error)) })
  const [regions, endpoints] = [set.cached(Region), set.cached(TunnelEndpoint)]
  const [tunnels, tunnelPasswords] = [set.cached(Tunnel), set.cached(TunnelPassword)]
  const stop = new AbortController()
  const running = set.run(stop.signal)
  opened.defer(async () => {
    stop.abort()
    await running
  })
  await set.synced()
  const settings = { tokenSecret: new Uint8Array(32), tunnelsPerNamespace: TUNNELS_PER_NAMESPACE, now: () => new Date() }
  return createTunnelDeps({ ...given, ...settings, regions, endpoints, tunnels, tunnelPasswords })
}
