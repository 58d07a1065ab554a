import { z } from 'zod'
import { METHOD_MAX, REQUEST_REASONS } from '../../shared/tunnel-decisions.ts'
import type { RequestFilter } from '../../journal/port.ts'
import { wrongField } from '../http/errors.ts'
import { Address, SpanQuery } from './journal-query.ts'

const statusRule = 'must be a status from 100 to 599'
const toInteger = (value: unknown): unknown => (typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value)

/** Standard methods (RFC 9110, section 9; RFC 5789). Methods are case-sensitive: `get` is not one of these. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']
const methodRule = `must be a method in the case in which it was sent, such as ${METHODS.slice(0, 7).join(', ')}`
const Method = z
  .string()
  .max(METHOD_MAX)
  .regex(/^\S+$/, methodRule)
  .refine((method) => METHODS.includes(method) || !METHODS.includes(method.toUpperCase()), methodRule)

/** Query parameters of the request log; a value that no record can have is rejected. */
export const RequestQuery = {
  ...SpanQuery,
  method: Method.optional().describe('Only requests with this method.'),
  status: z
    .preprocess(toInteger, z.int(statusRule).min(100, statusRule).max(599, statusRule))
    .optional()
    .describe('Only answers with this status.'),
  statusClass: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']).optional().describe('Only answers of this class.'),
  sourceIp: Address.optional().describe('Only requests from this address.'),
  pathPrefix: z
    .string()
    .max(2_048)
    .regex(/^[^?]*$/, 'must not hold a query, which is not recorded')
    .optional()
    .describe('Only paths with this prefix.'),
  origin: z.enum(['backend', 'edge']).optional().describe('Only answers of the backend, or only those of the edge.'),
  reason: z.enum(REQUEST_REASONS).optional().describe('Only requests that the edge answered or ended for this reason.'),
}
type Parsed = z.output<z.ZodObject<typeof RequestQuery>>

/** Returns the filter for a query. @throws ApiError `invalid_request` when no request can match */
export function requestFilter(tunnel: string, { statusClass, ...rest }: Parsed): RequestFilter {
  const { status } = rest
  if (status !== undefined && statusClass !== undefined && statusClass !== classOf(status))
    throw wrongField('statusClass', `must be ${classOf(status)} or be left out, with status=${status}`)
  return { tunnel, ...rest, statusClass: statusClass && Number(statusClass[0]) }
}

const classOf = (status: number): string => `${Math.floor(status / 100)}xx`
