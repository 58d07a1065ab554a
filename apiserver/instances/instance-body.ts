import { z } from 'zod'
import { ExtensionName } from '../../crds/motor.ts'
import { ruleMessage } from '../../shared/field-errors.ts'
import { IDENTIFIER, IDENTIFIER_RULE } from '../../crds/shared-instance.ts'
import { wrongField } from '../http/errors.ts'
import { EXAMPLE } from '../openapi/openapi-schemas.ts'
import { Time } from '../resources/names-and-times.ts'

export const TTL_SECONDS = { min: 60, max: 2_592_000 } as const

export const Identifier = z.string(ruleMessage(IDENTIFIER_RULE)).regex(IDENTIFIER, IDENTIFIER_RULE)
const ttlRule = `must be an integer from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}`

const Ttl = z.int(ttlRule).min(TTL_SECONDS.min, ttlRule).max(TTL_SECONDS.max, ttlRule)
const RegionId = z.string().min(1).max(253).describe('Id of a region in `GET /v1/regions`.')
const MotorName = z.string().min(1).max(64).describe('Engine and version; one of the motors that the region lists.')
const Template = z.string().min(1).max(253).describe('Id of the instance to copy; of the same namespace, region and motor.')
const Extensions = z.array(ExtensionName).max(32)

/** Whether a body has at most one of `ttl` and `expiresAt`. */
const isOneEnd = ({ ttl, expiresAt }: { readonly ttl?: unknown; readonly expiresAt?: unknown }): boolean =>
  ttl === undefined || expiresAt === undefined
const ONE_END = { path: ['expiresAt'], error: 'must not be given together with ttl' }
/** Rule of {@link isOneEnd} in JSON Schema. */
const ONE_END_SCHEMA = { not: { required: ['ttl', 'expiresAt'] } }

/** Body of `POST /v1/instances`. The schema does not check whether region and motor exist: that is 422, not 400. */
export const CreateInstanceBody = z
  .object({
    identifier: Identifier.describe('Label of your choice; need not be unique.'),
    region: RegionId,
    motor: MotorName,
    ttl: Ttl.optional().describe('Seconds to live; not together with `expiresAt`.'),
    expiresAt: Time.optional().describe('Time of the automatic deletion; not together with `ttl`.'),
    template: Template.optional(),
    extensions: Extensions.optional().describe('Extensions of the engine to install at creation.'),
  })
  .refine(isOneEnd, ONE_END)
  .meta({
    id: 'CreateInstance',
    ...ONE_END_SCHEMA,
    examples: [
      { identifier: 'pr-42', region: EXAMPLE.region, motor: EXAMPLE.motor, ttl: 3600 },
      { identifier: 'pr-42-documents', region: EXAMPLE.region, motor: 'mongodb-7.0.2', ttl: 3600 },
    ],
  })
export type CreateInstanceBody = z.output<typeof CreateInstanceBody>

/** Body of `PATCH /v1/instances/{id}`: a JSON merge patch (RFC 7396); an empty one changes nothing. */
export const PatchInstanceBody = z
  .object({
    identifier: Identifier.optional(),
    isEnabled: z.boolean().optional().describe('False: logins are rejected and sessions end.'),
    expiresAt: Time.nullable().optional().describe('Time of the automatic deletion; null: never. Not together with `ttl`.'),
    ttl: Ttl.optional().describe('Seconds from now until the automatic deletion; not together with `expiresAt`.'),
  })
  .refine(isOneEnd, ONE_END)
  .meta({ id: 'PatchInstance', ...ONE_END_SCHEMA, examples: [{ ttl: 7200 }, { isEnabled: true }] })
export type PatchInstanceBody = z.output<typeof PatchInstanceBody>

/** Body of `PUT /v1/instances/by-identifier/{identifier}`. */
export const EnsureInstanceBody = z
  .object({
    region: RegionId,
    motor: MotorName,
    ttl: Ttl.optional().describe('Seconds to live from now. When absent, an existing database keeps its time.'),
    template: Template.optional().describe('Id of the instance to copy; used only when the database is created.'),
    extensions: Extensions.optional().describe('Extensions of the engine to install; installed ones stay.'),
  })
  .meta({
    id: 'EnsureInstance',
    examples: [{ region: EXAMPLE.region, motor: EXAMPLE.motor, ttl: 3600 }],
  })
export type EnsureInstanceBody = z.output<typeof EnsureInstanceBody>

/** Returns the expiry of an instance created now, RFC 3339 in UTC; undefined for never. */
export function expiryOf({ ttl, expiresAt }: Pick<CreateInstanceBody, 'ttl' | 'expiresAt'>, now: Date): string | undefined {
  if (ttl !== undefined) return new Date(now.getTime() + ttl * 1000).toISOString()
  return expiresAt === undefined ? undefined : new Date(expiresAt).toISOString()
}

/** Checks the distance of an expiry. @throws ApiError `invalid_request` unless `expiresAt` is 60 seconds to 30 days ahead */
export function requireAhead(expiresAt: string, now: Date): void {
  const seconds = (Date.parse(expiresAt) - now.getTime()) / 1000
  if (seconds >= TTL_SECONDS.min && seconds <= TTL_SECONDS.max) return
  throw wrongField('expiresAt', 'must be 60 seconds to 30 days ahead')
}
