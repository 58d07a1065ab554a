import { z } from 'zod'
import { endStatus, endWithin } from './formats/lifetime.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'

/** How long one is good at the most (contract, "Authentication" 3). */
export const PASSWORD_LIFE_MS = 4 * 3_600_000

/**
 * Form of a password that the REST API issues: 32 random characters of 62, some 190 bits. One of this form cannot be guessed; one that a tenant thought up,
 * whose hash came by kubectl, may have any other.
 */
export const ISSUED_PASSWORD = /^mt_[0-9A-Za-z]{32}$/

/** Reasons of a password's `Ready` condition. */
export const PasswordReason = {
  /** It is accepted. */
  Active: 'Active',
  /** Its time has passed: it is refused, and deleted soon. */
  Expired: 'Expired',
  /** Its tunnel is gone, or is a later one of the same name. */
  TunnelMissing: 'TunnelMissing',
  /** Its tunnel has as many older ones as it may have: it is refused until one of them ends. */
  TooManyPasswords: 'TooManyPasswords',
} as const

export const TunnelPasswordSpec = z.object({
  tunnelRef: z
    .object({ name: z.string().min(1).max(253).describe('Its name.') })
    .describe('Tunnel of the same namespace that it opens.'),
  sha256: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in 64 lower-case hexadecimal digits')
    .describe(
      'SHA-256 of the password, which begins with `mt_` and is kept nowhere. Make it a random one: a short one can be found by its hash.',
    ),
  expiresAt: z.iso
    .datetime(UTC_RULE)
    .max(32)
    .describe('When it stops being accepted, in UTC; 4 hours after its creation at the latest, whatever is said here.'),
})

/** A temporary password of a tunnel's SSH side. */
export const TunnelPassword = defineKind({
  kind: 'TunnelPassword',
  plural: 'tunnelpasswords',
  shortNames: ['tpw'],
  namespaced: true,
  description: 'A temporary password for the SSH side of a tunnel.',
  spec: TunnelPasswordSpec,
  status: z.object({ ...commonStatus, expiresAt: endStatus }),
  immutable: ['spec'],
  columns: [
    { name: 'Tunnel', type: 'string', jsonPath: '.spec.tunnelRef.name' },
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type TunnelPassword = Resource<typeof TunnelPassword>

/** When it stops being accepted, in milliseconds since the epoch, whoever made it. */
export const endOfPassword = ({ metadata, spec }: TunnelPassword): number => endWithin(PASSWORD_LIFE_MS, metadata, spec.expiresAt)
