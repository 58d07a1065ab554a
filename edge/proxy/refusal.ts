import type { RequestRecord } from '../../journal/port.ts'
import type { Route } from '../route.ts'
import type { ProxyContext } from './context.ts'

/** A request that the edge itself has answered, as its tunnel's journal has it. */
export type Refused = Omit<RequestRecord, 'tunnel' | 'origin' | 'durationMs'> & {
  /** When it came, by the clock that durations go by. */
  readonly began: number
}

/** Counts it, and writes it down where it was a tunnel's. */
export function recordRejected(context: ProxyContext, route: Route | undefined, { began, ...refused }: Refused): void {
  if (!route) return context.metrics.stopped(refused.status, refused.reason ?? '')
  const durationMs = Math.round(context.now() - began)
  const record = { ...refused, tunnel: route.id, durationMs, origin: 'edge' } as const
  context.journal.request(record)
  context.metrics.finished(record)
}

const LABEL = 16

/** The tunnel that a Host, in lower case and without its port, is of. */
export function routeOf(host: string, routes: ProxyContext['routes']): Route | undefined {
  const { domain } = routes
  const isBelow = host.length === LABEL + 1 + domain.length && host.charCodeAt(LABEL) === 0x2e && host.endsWith(domain)
  return isBelow ? routes.get(host.slice(0, LABEL)) : undefined
}
