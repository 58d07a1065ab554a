import { z } from 'zod'
import type { Incoming } from './https-client.ts'

const Success = z.strictObject({ msg: z.literal('OK'), data: z.record(z.string(), z.unknown()) })
const Refusal = z.strictObject({
  msg: z
    .string()
    .min(1)
    .refine((msg) => msg !== 'OK'),
  error: z.strictObject({
    code: z.string().regex(/^[a-z_]+$/),
    details: z.array(z.strictObject({ field: z.string(), message: z.string().min(1) })),
    requestId: z.string().min(1),
  }),
})

/**
 * Expects the common form of all responses of the API (docs/api.md, "Errors"). @returns the body @throws Error when the response
 * violates the form
 */
export function expectValidBody({ status, headers, text }: Incoming): unknown {
  const requestId = headers['x-request-id']
  if (typeof requestId !== 'string' || requestId === '') throw new Error(`response ${status} has no X-Request-Id`)
  if (status < 300 && ![200, 201, 202].includes(status)) throw new Error(`response ${status} is not a status of this API`)
  if (!/^application\/json\b/.test(String(headers['content-type']))) {
    throw new Error(`response ${status} is ${String(headers['content-type'])}, not JSON: ${text}`)
  }
  const body: unknown = JSON.parse(text)
  const result = status < 300 ? Success.safeParse(body) : Refusal.safeParse(body)
  if (!result.success) throw new Error(`response ${status} has another form: ${text}: ${result.error.message}`)
  const { data } = result
  if ('error' in data && data.error.requestId !== requestId) throw new Error(`two request ids in one response: ${text}`)
  return body
}
