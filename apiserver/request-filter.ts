import { z } from 'zod'
import type { RequestFilter } from '../journal/port.ts'
import { Address, SpanQuery } from './journal-query.ts'

const statusRule = 'must be a status from 100 to 599'
const toInteger = (value: unknown): unknown => (typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value)

/** What a request log is searched by. */
export const RequestQuery = {
  ...SpanQuery,
  method: z.string().min(1).max(32).optional().describe('Only requests with this method.'),
  status: z
    .preprocess(toInteger, z.int(statusRule).min(100, statusRule).max(599, statusRule))
    .optional()
    .describe('Only answers with this status.'),
  statusClass: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']).optional().describe('Only answers of this class.'),
  sourceIp: Address.optional().describe('Only requests from this address.'),
  pathPrefix: z.string().max(2_048).optional().describe('Only paths that begin so.'),
  origin: z.enum(['backend', 'edge']).optional().describe('Only what the backend answered, or the edge itself.'),
  reason: z.string().max(64).optional().describe('Only what the edge answered for this reason.'),
}
type Parsed = z.output<z.ZodObject<typeof RequestQuery>>

export function requestFilter(tunnel: string, { statusClass, ...rest }: Parsed): RequestFilter {
  return { tunnel, ...rest, statusClass: statusClass && Number(statusClass[0]) }
}
