/** Namespace that a page shows. */
export interface Place {
  readonly organization: string
  readonly namespace: string
}

export const TUNNEL_TABS = [
  'overview',
  'requests',
  'connections',
  'settings',
  'passwords',
  'webhooks',
  'explain',
  'audit',
] as const
export type TunnelTab = (typeof TUNNEL_TABS)[number]

/** Page that a path stands for. */
export type Route =
  | { readonly page: 'start' | 'unknown' }
  | ({ readonly page: 'tunnels' | 'new-tunnel' | 'databases' | 'new-database' | 'audit' } & Place)
  | ({ readonly page: 'dedicated-databases' | 'new-dedicated-database' } & Place)
  | ({ readonly page: 'tunnel'; readonly id: string; readonly tab: TunnelTab } & Place)
  | ({ readonly page: 'database' | 'dedicated-database'; readonly id: string } & Place)

const BASE = '/dashboard'
const UNKNOWN: Route = { page: 'unknown' }

/** Reads a path of the dashboard. A segment that does not decode makes the path unknown. */
export function routeOf(path: string): Route {
  const segments = segmentsOf(path)
  if (segments?.length === 0) return { page: 'start' }
  const [o, organization, namespace, kind = 'tunnels', id, tab] = segments ?? []
  if (o !== 'o' || organization === undefined || namespace === undefined) return UNKNOWN
  return routeIn({ organization, namespace }, kind, { id, tab })
}

function routeIn(
  place: Place,
  kind: string,
  { id, tab = 'overview' }: { id: string | undefined; tab: string | undefined },
): Route {
  if (kind === 'audit' && id === undefined) return { page: 'audit', ...place }
  if (kind === 'databases') return databaseRoute(place, id)
  if (kind === 'dedicated') return dedicatedRoute(place, id)
  if (kind !== 'tunnels') return UNKNOWN
  if (id === undefined) return { page: 'tunnels', ...place }
  if (id === 'new') return { page: 'new-tunnel', ...place }
  const known = TUNNEL_TABS.find((name) => name === tab)
  return known ? { page: 'tunnel', id, tab: known, ...place } : UNKNOWN
}

function databaseRoute(place: Place, id: string | undefined): Route {
  if (id === undefined) return { page: 'databases', ...place }
  return id === 'new' ? { page: 'new-database', ...place } : { page: 'database', id, ...place }
}

function dedicatedRoute(place: Place, id: string | undefined): Route {
  if (id === undefined) return { page: 'dedicated-databases', ...place }
  return id === 'new' ? { page: 'new-dedicated-database', ...place } : { page: 'dedicated-database', id, ...place }
}

function segmentsOf(path: string): readonly string[] | undefined {
  if (path !== BASE && !path.startsWith(`${BASE}/`)) return undefined
  try {
    return path
      .slice(BASE.length)
      .split('/')
      .filter((segment) => segment !== '')
      .map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/** Returns the path of a page of a namespace: `pathOf(place, 'tunnels', id, 'requests')`. */
export const pathOf = ({ organization, namespace }: Place, ...segments: readonly string[]): string =>
  [BASE, 'o', ...[organization, namespace, ...segments].map(encodeURIComponent)].join('/')

/** Returns the path of a resource in the REST API: `apiPath(place, 'tunnels', id)`. */
export const apiPath = ({ organization, namespace }: Place, ...segments: readonly string[]): string =>
  ['/v1/organizations', organization, 'namespaces', namespace, ...segments]
    .map((segment, index) => (index === 0 ? segment : encodeURIComponent(segment)))
    .join('/')

/** Returns the value of the header `Mooring-Namespace` for calls without slugs in their path. */
export const namespaceHeader = ({ organization, namespace }: Place) => ({ 'Mooring-Namespace': `${organization}/${namespace}` })
