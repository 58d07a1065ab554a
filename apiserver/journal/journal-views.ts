import { z } from 'zod'
import type { AuditRecord, ConnectionRecord, RequestRecord, Stats } from '../../journal/port.ts'

const time = (ms: number): string => new Date(ms).toISOString()
const Count = z.int().min(0)

/** One request through a tunnel (contract, "Events", 4; surface, section 5). */
export const RequestView = z
  .object({
    id: z.uuid(),
    timestamp: z.iso.datetime().describe('When its head had arrived.'),
    method: z.string(),
    path: z.string().describe('Without its query.'),
    status: z.int(),
    durationMs: z.number(),
    bytesIn: Count,
    bytesOut: Count,
    sourceIp: z.string(),
    origin: z.enum(['backend', 'edge']).describe('Who answered.'),
    reason: z.string().nullable().describe('Why the edge answered.'),
    protocol: z.enum(['http/1.1', 'h2']),
  })
  .meta({ id: 'TunnelRequest' })
export type RequestView = z.output<typeof RequestView>

export function requestView(record: RequestRecord): RequestView {
  const { id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol } = record
  return { id, timestamp: time(at), method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol }
}

/** A client that came, went or was refused (contract, "Connection event record"). */
export const ConnectionView = z
  .object({
    id: z.uuid(),
    timestamp: z.iso.datetime(),
    type: z.enum(['connect', 'disconnect', 'refused']).describe('`refused` only with `include=refused`.'),
    clientIp: z.string(),
    authMethod: z.enum(['key', 'token']).nullable(),
    sessionId: z.string(),
    keyFingerprint: z.string().nullable(),
    passwordId: z.string().nullable(),
    reason: z.string().nullable().describe('Why it went or was refused.'),
    durationMs: z.number().nullable(),
  })
  .meta({ id: 'TunnelConnection' })

export function connectionView(record: ConnectionRecord): z.output<typeof ConnectionView> {
  const { id, at, type, clientIp, authMethod, sessionId, keyFingerprint, passwordId, reason, durationMs } = record
  return { id, timestamp: time(at), type, clientIp, authMethod, sessionId, keyFingerprint, passwordId, reason, durationMs }
}

export const AUDIT_ACTIONS = ['create', 'update', 'delete', 'read'] as const

/** Who did what to a resource. */
export const AuditEntryView = z
  .object({
    id: z.uuid(),
    timestamp: z.iso.datetime(),
    actor: z.object({ name: z.string(), kind: z.string() }).nullable().describe('Null when it is not known.'),
    via: z.enum(['rest', 'kubectl', 'unknown']),
    action: z.enum(AUDIT_ACTIONS).describe('`read`: credentials of a database were handed out.'),
    resource: z.object({
      kind: z.string(),
      id: z.string(),
      name: z.string().describe('What its owner calls it: the name of a tunnel, the identifier of a database.'),
      hostname: z.string().optional().describe('Of a tunnel that has, or had, one.'),
    }),
    changes: z
      .array(z.object({ path: z.string().describe('The field, as this API names it.'), from: z.unknown(), to: z.unknown() }))
      .describe('What was before and after; null where there was nothing. A digest stands for the value of a header.'),
    sourceIp: z.string().nullable(),
    requestId: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' })

export function auditEntryView(record: AuditRecord): z.output<typeof AuditEntryView> {
  const { id, at, actor, via, action, resource, changes, sourceIp, requestId } = record
  return { id, timestamp: time(at), actor, via, action, resource, changes: [...changes], sourceIp, requestId }
}

/** Sums of a tunnel's requests over a window (contract, "Tunnel behaviours"). */
export const StatsView = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    requests: Count,
    averageResponseTimeMs: z.number().nullable().describe('Of the answers of the backend; null without any.'),
    statusClasses: z.object({ '1xx': Count, '2xx': Count, '3xx': Count, '4xx': Count, '5xx': Count }),
    edgeAnswered: Count.describe('Requests that the edge answered itself.'),
    bandwidth: z.object({ bytesIn: Count, bytesOut: Count }).describe('Of the bodies.'),
    topClientIps: z.array(z.object({ ip: z.string(), requests: Count })).describe('The ten with most requests.'),
    series: z
      .array(z.object({ at: z.iso.datetime(), requests: Count, errors: Count }))
      .describe('By the minute, over 7 days by the hour; those without requests are left out. `errors` are 5xx.'),
  })
  .meta({ id: 'TunnelStats' })

export function statsView(stats: Stats, span: { readonly from: number; readonly to: number }): z.output<typeof StatsView> {
  const { requests, averageResponseTimeMs, statusClasses, edgeAnswered, bytesIn, bytesOut, topClientIps, series } = stats
  return {
    from: time(span.from),
    to: time(span.to),
    ...{ requests, averageResponseTimeMs, statusClasses, edgeAnswered },
    bandwidth: { bytesIn, bytesOut },
    topClientIps: [...topClientIps],
    series: series.map(({ at, ...counts }) => ({ at: time(at), ...counts })),
  }
}
