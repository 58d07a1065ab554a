import { z } from 'zod'
import type { AuditRecord, ConnectionRecord, RequestRecord, Stats } from '../../journal/port.ts'

const time = (ms: number): string => new Date(ms).toISOString()
const Count = z.int().min(0)

/** Request through a tunnel (docs/api.md, "Request log and statistics"). */
export const RequestView = z
  .object({
    id: z.uuid(),
    timestamp: z.iso.datetime().describe('Time at which the head of the request had arrived.'),
    method: z.string(),
    path: z.string().describe('Path without the query.'),
    status: z.int(),
    durationMs: z.number(),
    bytesIn: Count,
    bytesOut: Count,
    sourceIp: z.string(),
    origin: z.enum(['backend', 'edge']).describe('Component that answered.'),
    reason: z.string().nullable().describe('Reason of an answer of the edge.'),
    protocol: z.enum(['http/1.1', 'h2']),
  })
  .meta({ id: 'TunnelRequest' })
export type RequestView = z.output<typeof RequestView>

export function requestView(record: RequestRecord): RequestView {
  const { id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol } = record
  return { id, timestamp: time(at), method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol }
}

/** Connect, disconnect or rejected login of an SSH client (docs/api.md, "Request log and statistics"). */
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
    reason: z.string().nullable().describe('Reason of the disconnect or the rejection.'),
    durationMs: z.number().nullable(),
  })
  .meta({ id: 'TunnelConnection' })

export function connectionView(record: ConnectionRecord): z.output<typeof ConnectionView> {
  const { id, at, type, clientIp, authMethod, sessionId, keyFingerprint, passwordId, reason, durationMs } = record
  return { id, timestamp: time(at), type, clientIp, authMethod, sessionId, keyFingerprint, passwordId, reason, durationMs }
}

export const AUDIT_ACTIONS = ['create', 'update', 'delete', 'read'] as const

/** Audit entry: actor, action and resource (docs/api.md, "Audit log"). */
export const AuditEntryView = z
  .object({
    id: z.uuid(),
    timestamp: z.iso.datetime(),
    actor: z.object({ name: z.string(), kind: z.string() }).nullable().describe('Null when unknown.'),
    via: z.enum(['rest', 'kubectl', 'unknown']),
    action: z.enum(AUDIT_ACTIONS).describe('`read`: the credentials of a database were read.'),
    resource: z.object({
      kind: z.string(),
      id: z.string(),
      name: z.string().describe('Name of a tunnel, identifier of a database.'),
      hostname: z.string().optional().describe('Hostname of a tunnel, once it has one.'),
    }),
    changes: z
      .array(z.object({ path: z.string().describe('Name of the field in this API.'), from: z.unknown(), to: z.unknown() }))
      .describe('Values before and after; null for an absent value. Values of headers are replaced by a digest.'),
    sourceIp: z.string().nullable(),
    requestId: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' })

export function auditEntryView(record: AuditRecord): z.output<typeof AuditEntryView> {
  const { id, at, actor, via, action, resource, changes, sourceIp, requestId } = record
  return { id, timestamp: time(at), actor, via, action, resource, changes: [...changes], sourceIp, requestId }
}

/** Statistics of a tunnel's requests over a window (docs/api.md, "Request log and statistics"). */
export const StatsView = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    requests: Count,
    averageResponseTimeMs: z.number().nullable().describe('Average over the answers of the backend; null without any.'),
    statusClasses: z.object({ '1xx': Count, '2xx': Count, '3xx': Count, '4xx': Count, '5xx': Count }),
    edgeAnswered: Count.describe('Requests that the edge answered.'),
    bandwidth: z.object({ bytesIn: Count, bytesOut: Count }).describe('Bytes of the bodies.'),
    topClientIps: z.array(z.object({ ip: z.string(), requests: Count })).describe('The ten addresses with the most requests.'),
    series: z
      .array(z.object({ at: z.iso.datetime(), requests: Count, errors: Count }))
      .describe(
        'One item per minute, with the window 7d one per hour; items without requests are left out. `errors` counts 5xx.',
      ),
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
