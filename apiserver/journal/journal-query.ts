import { SocketAddress, isIP } from 'node:net'
import { z } from 'zod'
import { plainAddress } from '../../crds/formats/address-list.ts'
import { ApiError, wrongField } from '../http/errors.ts'

const Time = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2030-01-31T12:00:00Z' })
  .max(40)
  .transform((text) => Date.parse(text))

/** `from` and `to` of a query; undefined where absent, else milliseconds since the epoch. */
export const SpanQuery = {
  from: Time.optional().describe('Only what happened at this time or later.'),
  to: Time.optional().describe('Only what happened before this time.'),
}

/** An IP address, as it came. */
export const IpAddress = z
  .string()
  .max(45)
  .refine((text) => isIP(text) !== 0, 'must be an IP address')
  .meta({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] })

/** An address as the journal writes it: `2001:DB8:0::7` is `2001:db8::7`, `::ffff:192.0.2.1` is `192.0.2.1`. */
export const Address = IpAddress.transform(plainAddress).transform((plain) =>
  isIP(plain) === 6 ? new SocketAddress({ address: plain, family: 'ipv6' }).address : plain,
)

/** @throws ApiError `invalid_request` */
export function requireOrder({ from, to }: { readonly from?: number | undefined; readonly to?: number | undefined }): void {
  if (from === undefined || to === undefined || from < to) return
  throw wrongField('to', 'must be later than from')
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** What to ask the journal for: one record more than is shown tells whether there is another page. @throws ApiError `invalid_request` */
export function journalPage({ limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }): {
  readonly limit: number
  readonly before?: string
} {
  if (cursor === undefined) return { limit: limit + 1 }
  const before = Buffer.from(cursor, 'base64url').toString()
  if (ID.test(before) && cursorOf(before) === cursor) return { limit: limit + 1, before }
  throw new ApiError('invalid_request', 'the cursor is not one that this API gave', {
    details: [{ field: 'cursor', message: 'must be the nextCursor of a page before' }],
  })
}

const cursorOf = (id: string): string => Buffer.from(id).toString('base64url')

/** The records of a page, of those that {@link journalPage} asked for. */
export function shownOf<R extends { readonly id: string }>(
  records: readonly R[],
  limit: number,
): { readonly shown: readonly R[]; readonly nextCursor: string | null } {
  const shown = records.slice(0, limit)
  const last = shown.at(-1)
  return { shown, nextCursor: last && records.length > limit ? cursorOf(last.id) : null }
}
