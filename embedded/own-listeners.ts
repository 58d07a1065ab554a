import { networkInterfaces } from 'node:os'
import { addressList, plainAddress } from '../crds/formats/address-list.ts'
import type { DatabaseServer } from '../crds/database-server.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import type { OwnListeners } from '../shared/outside-addresses.ts'
import type { Cache } from '../store/cache.ts'

export interface OwnListenersDeps {
  readonly endpoints: Pick<Cache<typeof TunnelEndpoint>, 'list'>
  readonly servers: Pick<Cache<typeof DatabaseServer>, 'list'>
  /** Host that clients on other machines connect to. */
  readonly publicHost: string
}

const LOOPBACK = addressList(['127.0.0.0/8', '::1'])

/** Creates the record of the ports on which embedded Mooring and its database servers listen, which webhooks must not reach. */
export function createOwnListeners({ endpoints, servers, publicHost }: OwnListenersDeps): OwnListeners & {
  /** Adds ports of Mooring itself. */
  readonly add: (...ports: readonly number[]) => void
} {
  const ports = new Set<number>()

  function isThisMachine(address: string): boolean {
    if (LOOPBACK.allows(address) || address === publicHost) return true
    return Object.values(networkInterfaces()).some((list) => list?.some((each) => plainAddress(each.address) === address))
  }

  return {
    add(...more) {
      for (const port of more) ports.add(port)
    },
    hasAddress: (address, port) =>
      (ports.has(port) || servers.list().some(({ status }) => status?.port === port)) && isThisMachine(address),
    domains: () => endpoints.list().map(({ spec }) => spec.domain),
  }
}
