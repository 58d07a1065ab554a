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

/** What holds for every answer of the API, whatever was asked (surface, section 2). @returns its body @throws Error when it does not */
export function checkedBody({ status, headers, text }: Incoming): unknown {
  const requestId = headers['x-request-id']
  if (typeof requestId !== 'string' || requestId === '') throw new Error(`an answer ${status} has no X-Request-Id`)
  if (status < 300 && ![200, 201, 202].includes(status)) throw new Error(`an answer ${status} is none of this API`)
  if (!/^application\/json\b/.test(String(headers['content-type']))) {
    throw new Error(`an answer ${status} is ${String(headers['content-type'])}, not JSON: ${text}`)
  }
  const body: unknown = JSON.parse(text)
  const result = status < 300 ? Success.safeParse(body) : Refusal.safeParse(body)
  if (!result.success) throw new Error(`an answer ${status} has another envelope: ${text}: ${result.error.message}`)
  const { data } = result
  if ('error' in data && data.error.requestId !== requestId) throw new Error(`two request ids in one answer: ${text}`)
  return body
}
