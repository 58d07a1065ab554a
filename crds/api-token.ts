import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, type Resource } from './kind.ts'
import { ROLES } from './names.ts'

export const ApiTokenSpec = z.object({
  displayName: z.string().min(1).max(100).describe('What its owner calls it.'),
  role: z.enum(ROLES).describe('Role in the namespace it lives in.'),
  expiresAt: z.iso.datetime().max(32),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
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
  status: z.object({ ...commonStatus }),
  immutable: ['spec.role', 'spec.expiresAt', 'spec.sha256'],
  columns: [
    { name: 'Display', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Role', type: 'string', jsonPath: '.spec.role' },
    // A string, not a date: kubectl prints dates as ages, and one to come as <invalid>.
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    AGE_COLUMN,
  ],
})
export type ApiToken = Resource<typeof ApiToken>
