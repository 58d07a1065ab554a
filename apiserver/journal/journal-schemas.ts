import { SocketAddress, isIP } from 'node:net'
import { z } from 'zod'
import { plainAddress } from '../../crds/formats/address-list.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import type { AuditRecord, ConnectionRecord, RequestRecord, Stats } from '../../journal/port.ts'

const Time = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2030-01-31T12:00:00Z' })
  .max(40)
  .transform((text) => Date.parse(text))

/** Query parameters `from` and `to`, in milliseconds since the epoch. */
export const SpanQuery = {
  from: Time.optional().describe('Only entries at this time or later.'),
  to: Time.optional().describe('Only entries before this time.'),
}

/** IP address as the caller wrote it. */
export const IpAddress = z
  .string()
  .max(45)
  .refine((text) => isIP(text) !== 0, 'must be an IP address')
  .meta({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] })

/** IP address in the journal's form: `2001:DB8:0::7` becomes `2001:db8::7`, `::ffff:192.0.2.1` becomes `192.0.2.1`. */
export const CanonicalIp = IpAddress.transform(plainAddress).transform((plain) =>
  isIP(plain) === 6 ? new SocketAddress({ address: plain, family: 'ipv6' }).address : plain,
)

/** Checks that `from` is before `to`. @throws ApiError `invalid_request` */
export function requireOrder({ from, to }: { readonly from?: number | undefined; readonly to?: number | undefined }): void {
  if (from === undefined || to === undefined || from < to) return
  throw wrongField('to', 'must be later than from')
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Returns the journal's limit and start; the limit is one more than the caller's, to see whether a next page exists.
 * @throws ApiError `invalid_request`
 */
export function journalPage({ limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }): {
  readonly limit: number
  readonly before?: string
} {
  if (cursor === undefined) return { limit: limit + 1 }
  const before = Buffer.from(cursor, 'base64url').toString()
  if (ID.test(before) && cursorOf(before) === cursor) return { limit: limit + 1, before }
  throw new ApiError('invalid_request', 'invalid cursor', {
    details: [{ field: 'cursor', message: 'must be the nextCursor of a previous page' }],
  })
}

const cursorOf = (id: string): string => Buffer.from(id).toString('base64url')

/** Returns the records of a page from those requested with {@link journalPage}. */
export function pageOf<R extends { readonly id: string }>(
  records: readonly R[],
  limit: number,
): { readonly shown: readonly R[]; readonly nextCursor: string | null } {
  const shown = records.slice(0, limit)
  const last = shown.at(-1)
  return { shown, nextCursor: last && records.length > limit ? cursorOf(last.id) : null }
}

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
    requests,
    averageResponseTimeMs,
    statusClasses,
    edgeAnswered,
    bandwidth: { bytesIn, bytesOut },
    topClientIps: [...topClientIps],
    series: series.map(({ at, ...counts }) => ({ at: time(at), ...counts })),
  }
}
