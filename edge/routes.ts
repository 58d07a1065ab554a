import {
  isPasswordOf,
  type NamedOwner,
  ownerNamedBy,
  ownerText,
  type OwnerKind,
  passwordsOf,
  type PasswordOwner,
} from '../shared/live-passwords.ts'
import type { DedicatedDatabase } from '../crds/dedicated-database.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../crds/tunnel-password.ts'
import type { Cache } from '../store/cache.ts'
import { keyToString, type Key } from '../store/port.ts'
import type { EdgeClock } from './clock.ts'
import { databaseRoute } from './database/database-route.ts'
import type { EdgeHeaderValues } from './header-values.ts'
import { KeyIndex } from './key-index.ts'
import type { ListedRoutes, LoginRoutes, Route, RoutedPassword } from './route.ts'
import { tunnelRoute } from './tunnel-route.ts'

export interface RoutesDeps extends Pick<EdgeClock, 'date'> {
  /** Name of the TunnelEndpoint whose tunnels are served. */
  readonly endpoint: string
  readonly domain: string
  readonly tunnels: Cache<typeof Tunnel>
  /** Dedicated databases. Absent: the edge opens none. */
  readonly databases?: Cache<typeof DedicatedDatabase> | undefined
  readonly passwords: Cache<typeof TunnelPassword>
  /** Header values from Secrets. Absent: such headers are removed. */
  readonly headerValues?: Pick<EdgeHeaderValues, 'configOf' | 'forget' | 'onArrival'> | undefined
  /** Called with an error that a listener throws. */
  readonly onError: (error: unknown) => void
}

/** Interval of the check for expired tunnels. */
const EXPIRY_CHECK_MS = 500

/** Routes of logins, and those of them that have visitors. */
export interface EndpointRoutes extends LoginRoutes, Disposable {
  /** Tunnels alone: a database has no visitors and no certificate. */
  readonly tunnels: ListedRoutes
}

/**
 * Creates the routes of an endpoint's tunnels and databases, prepared as these change. A tunnel that is being deleted or has expired is not
 * served, even when the operator is not running to delete it.
 */
export function createRoutes(deps: RoutesDeps): EndpointRoutes {
  const { endpoint, domain, tunnels, databases, passwords, headerValues, onError, date } = deps
  const byHostname = new Map<string, Route>()
  const keys = new KeyIndex()
  /** Hostname of each owner of a route, by `ownerText`: a deletion event does not carry it. */
  const hostnames = new Map<string, string>()
  /** Expiry of tunnels that have one, in milliseconds since the epoch. */
  const ends = new Map<string, { readonly owner: NamedOwner; readonly end: number }>()
  const listeners = new Set<(hostname: string) => void>()

  function refresh(owner: NamedOwner): void {
    const id = ownerText(owner)
    const route = livingRoute(id, owner)
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
    else {
      byHostname.delete(hostname)
      headerValues?.forget(hostname)
    }
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

  function livingRoute(id: string, owner: NamedOwner): Route | undefined {
    const route = routeOf(owner)
    const end = owner.kind === 'Tunnel' ? Date.parse(tunnels.get(owner)?.spec.expiresAt ?? '') : NaN
    if (!route || Number.isNaN(end)) {
      ends.delete(id)
      return route
    }
    ends.set(id, { owner, end })
    return end > date() ? route : undefined
  }

  /** Adds and removes expired tunnels. The clock may be set back: then a tunnel that had expired is served again. */
  function checkExpiry(): void {
    const now = date()
    for (const [id, { owner, end }] of ends) {
      const isOver = end <= now
      if (isOver === hostnames.has(id)) refresh(owner)
    }
  }

  const objectOf = (owner: NamedOwner): Tunnel | DedicatedDatabase | undefined =>
    owner.kind === 'Tunnel' ? tunnels.get(owner) : databases?.get(owner)

  function routeOf(owner: NamedOwner): Route | undefined {
    const about = { endpoint, domain, passwordsOf: routedPasswords, configOf: headerValues?.configOf }
    if (owner.kind === 'Tunnel') return tunnelRoute(tunnels.get(owner), about)
    return databaseRoute(databases?.get(owner), about)
  }

  function routedPasswords(owner: PasswordOwner): readonly RoutedPassword[] {
    const { namespace, name } = owner.metadata
    const named = passwords.byIndex('owner', ownerText({ kind: owner.kind, namespace, name }))
    return passwordsOf(owner, named).map((password) => ({
      id: password.metadata.uid,
      sha256: password.spec.sha256,
      expiresAt: endOfPassword(password),
    }))
  }

  /** Returns the tunnels and databases, of any endpoint, that have a password with this hash. */
  function ownersOf(sha256: string): ReadonlySet<string> {
    const owners = passwords.byIndex('sha256', sha256).flatMap((password) => {
      const named = ownerNamedBy(password)
      const owner = objectOf(named)
      return owner && isPasswordOf(password, owner) ? ownerText(named) : []
    })
    return new Set(owners)
  }

  /** Tunnel or database of each password, by resource key: a deletion event does not carry it. */
  const owners = new Map<string, NamedOwner>()
  function ownerOf(key: Key): NamedOwner | undefined {
    const id = keyToString(key)
    const password = passwords.get(key)
    const owner = password ? ownerNamedBy(password) : owners.get(id)
    if (password && owner) owners.set(id, owner)
    else owners.delete(id)
    return owner
  }
  function onPassword(key: Key): void {
    const owner = ownerOf(key)
    if (owner) refresh(owner)
  }
  const on =
    (kind: OwnerKind) =>
    ({ namespace, name }: Key): void =>
      refresh({ kind, namespace, name })
  const [onTunnel, onDatabase] = [on('Tunnel'), on('DedicatedDatabase')]

  for (const { metadata } of passwords.list()) ownerOf(metadata)
  for (const { metadata } of tunnels.list()) onTunnel(metadata)
  for (const { metadata } of databases?.list() ?? []) onDatabase(metadata)
  const subscriptions = [tunnels.onChange(onTunnel), passwords.onChange(onPassword)]
  if (databases) subscriptions.push(databases.onChange(onDatabase))
  headerValues?.onArrival((hostname) => {
    const { namespace, name } = byHostname.get(hostname) ?? {}
    if (name !== undefined) refresh({ kind: 'Tunnel', namespace, name })
  })
  const timer = setInterval(checkExpiry, EXPIRY_CHECK_MS).unref()

  const tunnelOf = (hostname: string): Route | undefined => {
    const route = byHostname.get(hostname)
    return route?.database ? undefined : route
  }
  const onChange = (listener: (hostname: string) => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  return {
    domain,
    onChange,
    get: (hostname) => byHostname.get(hostname),
    tunnels: {
      domain,
      onChange,
      get: tunnelOf,
      hostnames: () => [...byHostname.keys()].filter((hostname) => tunnelOf(hostname)),
    },
    ofPassword(sha256) {
      const [owner = '', ...others] = ownersOf(sha256)
      return others.length > 0 ? undefined : byHostname.get(hostnames.get(owner) ?? '')
    },
    ofKey: ({ type, blob }, limit) =>
      keys.of(type, blob, limit).flatMap((hostname) => {
        const route = byHostname.get(hostname)
        return route ? [route] : []
      }),
    [Symbol.dispose]() {
      clearInterval(timer)
      for (const unsubscribe of subscriptions) unsubscribe()
    },
  }
}

/** Cache indexes by which routes find passwords. */
export const routedPasswordIndexes = {
  owner: (password: TunnelPassword): readonly string[] => [ownerText(ownerNamedBy(password))],
  sha256: ({ spec }: TunnelPassword): readonly string[] => [spec.sha256],
}
