import { z } from 'zod'
import { endStatus, endWithin } from './formats/lifetime.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { ROLES } from './names.ts'

/** How long one is good at the most: a year (surface, section 2). */
export const API_TOKEN_LIFE_MS = 365 * 86_400_000

/** Reasons of an API token's `Ready` condition. */
export const ApiTokenReason = {
  /** It is accepted. */
  Active: 'Active',
  /** Its time has passed: it is refused. */
  Expired: 'Expired',
} as const

export const ApiTokenSpec = z.object({
  displayName: z.string().min(1).max(100).describe('What its owner calls it.'),
  role: z.enum(ROLES).describe('Role in the namespace it lives in.'),
  expiresAt: z.iso
    .datetime(UTC_RULE)
    .max(32)
    .describe('When it stops being accepted, in UTC; 365 days after its creation at the latest, whatever is said here.'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in 64 lower-case hexadecimal digits')
    .max(64)
    .describe('SHA-256 of the token; the token itself is kept nowhere.'),
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
    // A string, not a date: kubectl prints dates as ages, and one to come as <invalid>.
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type ApiToken = Resource<typeof ApiToken>

/** When it stops being accepted, in milliseconds since the epoch, whoever made it. */
export const endOfApiToken = ({ metadata, spec }: ApiToken): number => endWithin(API_TOKEN_LIFE_MS, metadata, spec.expiresAt)
