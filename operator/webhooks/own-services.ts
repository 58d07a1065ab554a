import { networkInterfaces } from 'node:os'
import { addressList, plainAddress } from '../../crds/formats/address-list.ts'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { OwnListeners } from '../../shared/outside-addresses.ts'
import { every } from '../../shared/timers.ts'
import type { Store } from '../../store/port.ts'
import { Service } from '../kubernetes/kinds.ts'

export interface OwnServicesDeps {
  readonly store: Pick<Store, 'list'>
  readonly log: { warn(details: object, message: string): void }
}

/** Interval of reading the Services, in milliseconds. */
const POLL_MS = 10_000
const LOOPBACK = addressList(['127.0.0.0/8', '::1'])
/** Entry of an address whose every port is Mooring's. */
const ANY = 'any'

export interface OwnServices extends Pick<OwnListeners, 'hasAddress'>, AsyncDisposable {
  /** Reads the Services now. */
  refresh(): Promise<void>
}

/**
 * Creates the record of the addresses of Mooring in a cluster, which webhooks must not reach: this pod, and the Services in Mooring's own
 * namespaces. A load balancer may share its address with others, so only its ports count. A new Service is known within 10 s.
 */
export function createOwnServices({ store, log }: OwnServicesDeps): OwnServices {
  let known: ReadonlySet<string> = new Set()

  async function refresh(): Promise<void> {
    const lists = await Promise.all([SYSTEM_NAMESPACE, SHARED_NAMESPACE].map((namespace) => store.list(Service, { namespace })))
    known = new Set(lists.flatMap(({ items }) => items.flatMap(addressesOf)))
  }
  const poll = () => refresh().catch((error: unknown) => log.warn({ err: error }, 'the Services of Mooring could not be read'))

  const isThisPod = (address: string): boolean =>
    LOOPBACK.allows(address) ||
    Object.values(networkInterfaces()).some((list) => list?.some((each) => plainAddress(each.address) === address))

  const polling = every(POLL_MS, poll)
  void poll()
  return {
    refresh,
    hasAddress: (address, port) => known.has(`${address} ${ANY}`) || known.has(`${address} ${port}`) || isThisPod(address),
    [Symbol.asyncDispose]: () => polling[Symbol.asyncDispose](),
  }
}

function addressesOf({ spec, status }: Service): readonly string[] {
  const { clusterIP, ports } = spec
  const own = clusterIP === undefined || clusterIP === 'None' ? [] : [`${clusterIP} ${ANY}`]
  const balancers = (status?.loadBalancer.ingress ?? []).flatMap(({ ip }) => ip ?? [])
  return [...own, ...balancers.flatMap((ip) => ports.map(({ port }) => `${ip} ${port}`))]
}
