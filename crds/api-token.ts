import { z } from 'zod'
import { endStatus, endWithin } from './formats/fields.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { ROLES } from './names.ts'

/** Maximum lifetime of an API token, in milliseconds: one year (docs/api.md, "Tokens"). */
export const API_TOKEN_LIFE_MS = 365 * 86_400_000

/** Reasons of an API token's `Ready` condition. */
export const ApiTokenReason = {
  /** The token is valid. */
  Active: 'Active',
  /** The token has expired; requests with it are rejected. */
  Expired: 'Expired',
} as const

export const ApiTokenSpec = z.object({
  displayName: z.string().min(1).max(100).describe('Display name, chosen by the owner.'),
  role: z.enum(ROLES).describe('Role that the token has in its namespace.'),
  expiresAt: z.iso
    .datetime(UTC_RULE)
    .max(32)
    .describe('Time of expiry, in UTC. The token expires at this time, but never more than 365 days after its creation.'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in 64 lower-case hexadecimal digits')
    .max(64)
    .describe('SHA-256 of the token. The token itself is not stored.'),
})

/** A bearer token bound to one namespace and role. */
export const ApiToken = defineKind({
  kind: 'ApiToken',
  plural: 'apitokens',
  shortNames: ['mtok'],
  namespaced: true,
  description: 'A bearer token bound to one namespace and role.',
  spec: ApiTokenSpec,
  status: z.object({ ...commonStatus, expiresAt: endStatus }),
  immutable: ['spec.role', 'spec.expiresAt', 'spec.sha256'],
  columns: [
    { name: 'Display', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Role', type: 'string', jsonPath: '.spec.role' },
    // Type string: kubectl prints a date as an age, and a future date as <invalid>.
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type ApiToken = Resource<typeof ApiToken>

/** Returns the expiry of an API token, in milliseconds since the epoch. The maximum lifetime also applies to tokens made with kubectl. */
export const endOfApiToken = ({ metadata, spec }: ApiToken): number => endWithin(API_TOKEN_LIFE_MS, metadata, spec.expiresAt)
