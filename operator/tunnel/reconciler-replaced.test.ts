import { expect, test } from 'vitest'
import type { Kind } from '../../crds/kind.ts'
import { Region } from '../../crds/region.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Key, Store } from '../../store/port.ts'
import { region, tunnel, tunnelEndpoint } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { ca, DAY } from '../../test/support/operator/tunnel-controllers.ts'
import { localIssuer } from './certificate-issuer.ts'
import { tunnelIndexes } from './indexes.ts'
import { createTunnelReconciler } from './reconciler.ts'
import { certificateSecret, hostOf } from './resources.ts'

const HOSTNAME = '0123456789abcdef'

test.each([
  { what: 'another tunnel has its name', found: tunnel({ metadata: { uid: 'another' } }) },
  { what: 'it is gone', found: undefined },
])('no certificate is obtained for a tunnel when, as its renewal is announced, $what', async ({ found }) => {
  const at = new Date()
  const endpoint = tunnelEndpoint()
  const [regions, endpoints, tunnels] = [
    settableCache(Region),
    settableCache(TunnelEndpoint),
    settableCache(Tunnel, tunnelIndexes),
  ]
  regions.put(region())
  endpoints.put(endpoint)
  const before = tunnel({ status: { hostname: HOSTNAME, endpointRef: { name: endpoint.metadata.name } } })
  tunnels.put(before)
  const local = localIssuer(() => ca)
  const { metadata, ...held } = certificateSecret(endpoint, HOSTNAME, { ...(await local.obtain(hostOf(endpoint, HOSTNAME))), at })
  const written: string[] = []
  const store = {
    get: async (kind: Kind) => (kind === Tunnel ? found : { ...held, metadata }),
    create: async (kind: Kind, { metadata: { name } }: { readonly metadata: Key }) => void written.push(`${kind.kind} ${name}`),
    mergePatch: async (kind: Kind, { name }: Key) => void written.push(`${kind.kind} ${name}`),
  }
  const reconcile = createTunnelReconciler({
    ...{ store: store as unknown as Store, regions: regions.cache, endpoints: endpoints.cache, tunnels: tunnels.cache },
    ...{ issuers: { local, acme: undefined }, now: () => new Date(at.getTime() + 70 * DAY), quota: { admit: () => undefined } },
    databases: { countByIndex: () => 0 },
    report: async () => undefined,
  })
  expect(await reconcile(before.metadata)).toEqual({ result: 'settled', reason: 'Gone' })
  expect(written).toEqual([])
})
