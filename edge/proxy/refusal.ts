import type { RequestRecord } from '../../journal/port.ts'
import type { Route } from '../route.ts'
import type { ProxyContext } from './context.ts'

/** Journal record of a request that the edge itself answered. */
export type Refused = Omit<RequestRecord, 'tunnel' | 'origin' | 'durationMs'> & {
  /** Arrival by the monotonic clock. */
  readonly began: number
}

/** Counts a rejected request, and records it when it names a tunnel. */
export function recordRejected(context: ProxyContext, route: Route | undefined, { began, ...refused }: Refused): void {
  if (!route) return context.metrics.stopped(refused.status, refused.reason ?? '')
  const durationMs = Math.round(context.now() - began)
  const record = { ...refused, tunnel: route.id, durationMs, origin: 'edge' } as const
  context.journal.request(record)
  context.metrics.finished(record)
}

const LABEL = 16

/** Returns the tunnel of a Host value in lower case without its port. */
export function routeOf(host: string, routes: ProxyContext['routes']): Route | undefined {
  const { domain } = routes
  const isBelow = host.length === LABEL + 1 + domain.length && host.charCodeAt(LABEL) === 0x2e && host.endsWith(domain)
  return isBelow ? routes.get(host.slice(0, LABEL)) : undefined
}
