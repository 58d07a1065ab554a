import { addressList } from '../crds/formats/address-list.ts'
import { isPasswordOf, passwordsOf, tunnelNamedBy } from '../shared/live-passwords.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../crds/tunnel-password.ts'
import type { Cache } from '../store/cache.ts'
import { keyToString, type Key } from '../store/port.ts'
import type { EdgeClock } from './clock.ts'
import type { ListedRoutes, LoginRoutes, Route, RoutedPassword } from './route.ts'

export interface RoutesDeps extends Pick<EdgeClock, 'date'> {
  /** Name of the TunnelEndpoint whose tunnels are served. */
  readonly endpoint: string
  readonly domain: string
  readonly tunnels: Cache<typeof Tunnel>
  readonly passwords: Cache<typeof TunnelPassword>
  /** Called with an error that a listener throws. */
  readonly onError: (error: unknown) => void
}

/** Interval of the check for expired tunnels. */
const EXPIRY_CHECK_MS = 500

/**
 * Creates the routes of an endpoint's tunnels, prepared as tunnels change. A tunnel that is being deleted or has expired is not served,
 * even when the operator is not running to delete it.
 */
export function createRoutes(deps: RoutesDeps): ListedRoutes & LoginRoutes & Disposable {
  const { endpoint, domain, tunnels, passwords, onError, date } = deps
  const byHostname = new Map<string, Route>()
  const keys = new KeyIndex()
  /** Hostname of each tunnel, by resource key: a deletion event does not carry it. */
  const hostnames = new Map<string, string>()
  /** Expiry of tunnels that have one, in milliseconds since the epoch. */
  const ends = new Map<string, { readonly key: Key; readonly end: number }>()
  const listeners = new Set<(hostname: string) => void>()

  function refresh(key: Key): void {
    const id = keyToString(key)
    const route = livingRoute(id, key)
    const before = hostnames.get(id)
    if (before !== undefined && before !== route?.hostname) setRoute(before, undefined)
    if (route) {
      hostnames.set(id, route.hostname)
      setRoute(route.hostname, route)
    } else hostnames.delete(id)
    for (const hostname of new Set([before, route?.hostname])) if (hostname !== undefined) notify(hostname)
  }

  /** Sets the route of a hostname; `undefined` removes it. */
  function setRoute(hostname: string, route: Route | undefined): void {
    const before = byHostname.get(hostname)
    keys.replace(hostname, before?.config.authorizedKeys ?? [], route?.config.authorizedKeys ?? [])
    if (route) byHostname.set(hostname, route)
    else byHostname.delete(hostname)
  }

  function notify(hostname: string): void {
    for (const listener of listeners) {
      try {
        listener(hostname)
      } catch (error) {
        onError(error)
      }
    }
  }

  function livingRoute(id: string, key: Key): Route | undefined {
    const route = routeOf(key)
    const end = Date.parse(tunnels.get(key)?.spec.expiresAt ?? '')
    if (!route || Number.isNaN(end)) {
      ends.delete(id)
      return route
    }
    ends.set(id, { key, end })
    return end > date() ? route : undefined
  }

  /** Adds and removes expired tunnels. The clock may be set back: then a tunnel that had expired is served again. */
  function checkExpiry(): void {
    const now = date()
    for (const [id, { key, end }] of ends) {
      const isOver = end <= now
      if (isOver === hostnames.has(id)) refresh(key)
    }
  }

  function routeOf(key: Key): Route | undefined {
    const tunnel = tunnels.get(key)
    const { hostname, endpointRef } = tunnel?.status ?? {}
    if (!tunnel || hostname === undefined || endpointRef?.name !== endpoint) return undefined
    if (tunnel.metadata.deletionTimestamp !== undefined) return undefined
    const { config } = tunnel.spec
    const host = `${hostname}.${domain}`
    return {
      id: tunnel.metadata.uid,
      namespace: tunnel.metadata.namespace ?? '',
      name: tunnel.metadata.name,
      ...{ hostname, host, url: `https://${host}`, config },
      ingress: addressList(config.ingressIPWhitelist),
      sshSources: addressList(config.sshIPWhitelist),
      passwords: routedPasswords(tunnel),
      certifiedAt: certifiedAtOf(tunnel),
    }
  }

  function routedPasswords(tunnel: Tunnel): readonly RoutedPassword[] {
    return passwordsOf(tunnel, passwords.byIndex('tunnel', keyToString(tunnel.metadata))).map((password) => ({
      ...{ id: password.metadata.uid, sha256: password.spec.sha256, expiresAt: endOfPassword(password) },
    }))
  }

  /** Returns the keys of all tunnels, of any endpoint, that have a password with this hash. */
  function ownersOf(sha256: string): ReadonlySet<string> {
    const owners = passwords.byIndex('sha256', sha256).flatMap((password) => {
      const tunnel = tunnels.get(tunnelNamedBy(password))
      return tunnel && isPasswordOf(password, tunnel) ? keyToString(tunnel.metadata) : []
    })
    return new Set(owners)
  }

  /** Tunnel of each password, by resource key: a deletion event does not carry it. */
  const owners = new Map<string, Key>()
  function ownerOf(key: Key): Key | undefined {
    const id = keyToString(key)
    const password = passwords.get(key)
    const owner = password ? tunnelNamedBy(password) : owners.get(id)
    if (password && owner) owners.set(id, owner)
    else owners.delete(id)
    return owner
  }
  function onPassword(key: Key): void {
    const owner = ownerOf(key)
    if (owner) refresh(owner)
  }

  for (const { metadata } of passwords.list()) ownerOf(metadata)
  for (const { metadata } of tunnels.list()) refresh(metadata)
  const subscriptions = [tunnels.onChange(refresh), passwords.onChange(onPassword)]
  const timer = setInterval(checkExpiry, EXPIRY_CHECK_MS).unref()

  return {
    domain,
    get: (hostname) => byHostname.get(hostname),
    hostnames: () => byHostname.keys(),
    ofPassword(sha256) {
      const [owner = '', ...others] = ownersOf(sha256)
      return others.length > 0 ? undefined : byHostname.get(hostnames.get(owner) ?? '')
    },
    ofKey: ({ type, blob }, limit) =>
      keys.of(type, blob, limit).flatMap((hostname) => {
        const route = byHostname.get(hostname)
        return route ? [route] : []
      }),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      for (const unsubscribe of subscriptions) unsubscribe()
    },
  }
}

const certifiedAtOf = ({ status }: Tunnel): string | undefined => status?.certificate?.obtainedAt

/** Cache indexes by which routes find passwords. */
export const routedPasswordIndexes = {
  tunnel: (password: TunnelPassword): readonly string[] => [keyToString(tunnelNamedBy(password))],
  sha256: ({ spec }: TunnelPassword): readonly string[] => [spec.sha256],
}

/**
 * Index of tunnels by the public keys in their `authorizedKeys`, updated as tunnels change: the cost of a lookup does not depend on the
 * number of tunnels. An index key is the type and the base64 text of a public key, without padding and comment.
 */
export class KeyIndex {
  /** One hostname, or a set of hostnames where several tunnels list the key. Most keys belong to one tunnel. */
  readonly #hostnames = new Map<string, string | Set<string>>()

  /** Replaces the `authorizedKeys` lines of a tunnel. */
  replace(hostname: string, before: readonly string[], after: readonly string[]): void {
    if (before === after) return
    for (const line of before) this.#remove(keyIn(line), hostname)
    for (const line of after) this.#add(keyIn(line), hostname)
  }

  /** Returns at most `limit` hostnames of tunnels that list the key, in no particular order. */
  of(type: string, blob: Buffer, limit: number): readonly string[] {
    const found = this.#hostnames.get(keyIn(`${type} ${blob.toString('base64')}`))
    if (found === undefined) return []
    return typeof found === 'string' ? [found] : firstOf(found, limit)
  }

  #add(key: string, hostname: string): void {
    const found = this.#hostnames.get(key)
    if (found === undefined) this.#hostnames.set(key, hostname)
    else if (typeof found !== 'string') found.add(hostname)
    else if (found !== hostname) this.#hostnames.set(key, new Set([found, hostname]))
  }

  #remove(key: string, hostname: string): void {
    const found = this.#hostnames.get(key)
    if (typeof found === 'object') found.delete(hostname)
    if (found === hostname || (typeof found === 'object' && found.size === 0)) this.#hostnames.delete(key)
  }
}

function keyIn(line: string): string {
  const comment = line.indexOf(' ', line.indexOf(' ') + 1)
  const key = comment === -1 ? line : line.slice(0, comment)
  return key.endsWith('=') ? key.replace(/=+$/, '') : key
}

function firstOf(all: Iterable<string>, limit: number): readonly string[] {
  const first: string[] = []
  for (const hostname of all) {
    if (first.length >= limit) break
    first.push(hostname)
  }
  return first
}
