import { SocketAddress, isIP } from 'node:net'
import { z } from 'zod'
import { plainAddress } from '../../crds/formats/address-list.ts'
import { ApiError, wrongField } from '../http/errors.ts'

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
