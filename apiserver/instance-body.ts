import { z } from 'zod'
import { ExtensionName } from '../crds/extensions.ts'
import { IDENTIFIER, IDENTIFIER_RULE } from '../crds/shared-instance.ts'
import { wrongField } from './errors.ts'
import { Time } from './rfc3339.ts'

export const TTL_SECONDS = { min: 60, max: 2_592_000 } as const

export const Identifier = z.string(IDENTIFIER_RULE).regex(IDENTIFIER, IDENTIFIER_RULE)
const ttlRule = `must be an integer from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}`

/** Body of `POST /v1/instances`. Whether region and motor exist is not the schema's to say: that is 422, not 400. */
export const CreateInstanceBody = z
  .object({
    identifier: Identifier.describe('Label of your choice; need not be unique.'),
    region: z.string().min(1).max(253).describe('Id of a region in `GET /v1/regions`.'),
    motor: z.string().min(1).max(64).describe('Engine and version, one of those the region lists.'),
    ttl: z.int(ttlRule).min(TTL_SECONDS.min, ttlRule).max(TTL_SECONDS.max, ttlRule).optional().describe('Seconds to live.'),
    expiresAt: Time.optional().describe('When it deletes itself; not together with `ttl`.'),
    template: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe('Id of an instance of the same namespace, region and motor to copy.'),
    extensions: z
      .array(ExtensionName)
      .max(32)
      .optional()
      .describe('Extensions of the engine that the database has from the start.'),
  })
  .refine(({ ttl, expiresAt }) => ttl === undefined || expiresAt === undefined, {
    path: ['expiresAt'],
    error: 'must not be given together with ttl',
  })
  .meta({
    id: 'CreateInstance',
    examples: [{ identifier: 'pr-42', region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01', motor: 'postgresql-15.4.0', ttl: 3600 }],
  })
export type CreateInstanceBody = z.output<typeof CreateInstanceBody>

/** Body of `PATCH /v1/instances/{id}`: a JSON merge patch (RFC 7396), so that an empty one changes nothing. */
export const PatchInstanceBody = z
  .object({
    identifier: Identifier.optional(),
    isEnabled: z.boolean().optional().describe('False: no login, sessions ended.'),
    expiresAt: Time.nullable().optional().describe('When it deletes itself; null: never.'),
  })
  .meta({ id: 'PatchInstance', examples: [{ isEnabled: false }] })
export type PatchInstanceBody = z.output<typeof PatchInstanceBody>

/** When an instance made now deletes itself, RFC 3339 in UTC; undefined for never. */
export function expiryOf({ ttl, expiresAt }: Pick<CreateInstanceBody, 'ttl' | 'expiresAt'>, now: Date): string | undefined {
  if (ttl !== undefined) return new Date(now.getTime() + ttl * 1000).toISOString()
  return expiresAt === undefined ? undefined : new Date(expiresAt).toISOString()
}

/** @throws ApiError `invalid_request` when `expiresAt` is not 60 seconds to 30 days ahead */
export function requireAhead(expiresAt: string, now: Date): void {
  const seconds = (Date.parse(expiresAt) - now.getTime()) / 1000
  if (seconds >= TTL_SECONDS.min && seconds <= TTL_SECONDS.max) return
  throw wrongField('expiresAt', 'must be 60 seconds to 30 days ahead')
}
