import { z } from 'zod'
import { endStatus, endWithin } from './formats/fields.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, type Rule, UTC_RULE } from './kind.ts'

/** Maximum lifetime of a tunnel password, in milliseconds: 4 hours (docs/api.md, "Tunnel passwords"). */
export const PASSWORD_LIFE_MS = 4 * 3_600_000

/**
 * Form of a password that the REST API issues: 32 random characters of 62, about 190 bits, which cannot be guessed. A password that a
 * tenant chose, whose hash was applied with kubectl, may have another form.
 */
export const ISSUED_PASSWORD = /^mt_[0-9A-Za-z]{32}$/

/** Reasons of a password's `Ready` condition. */
export const PasswordReason = {
  /** The password is valid. */
  Active: 'Active',
  /** The password has expired. It is rejected, and deleted later. */
  Expired: 'Expired',
  /** The tunnel was deleted, or replaced by another tunnel of the same name. */
  TunnelMissing: 'TunnelMissing',
  /** The database was deleted, replaced by another one of the same name, or has no SSH tunnel. */
  DatabaseMissing: 'DatabaseMissing',
  /** The tunnel or database has the maximum number of older passwords. The password is rejected until one of them expires. */
  TooManyPasswords: 'TooManyPasswords',
} as const

export const TunnelPasswordSpec = z.object({
  tunnelRef: z
    .object({ name: z.string().min(1).max(253).describe('Name of the Tunnel.') })
    .optional()
    .describe('Tunnel that the password is for, in the same namespace. Give this or `databaseRef`.'),
  databaseRef: z
    .object({ name: z.string().min(1).max(253).describe('Name of the DedicatedDatabase.') })
    .optional()
    .describe('DedicatedDatabase whose SSH tunnel the password is for, in the same namespace.'),
  sha256: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in 64 lower-case hexadecimal digits')
    .describe(
      'SHA-256 of the password. The password begins with `mt_` and is not stored. Use a long random password; a short one can be guessed from the hash.',
    ),
  expiresAt: z.iso
    .datetime(UTC_RULE)
    .max(32)
    .describe('Time of expiry, in UTC. The password expires at this time, but never more than 4 hours after its creation.'),
})

const ONE_OWNER: Rule = {
  cel: 'has(self.tunnelRef) != has(self.databaseRef)',
  message: 'must name either a Tunnel or, in databaseRef, a DedicatedDatabase',
  field: 'spec.tunnelRef',
  holds: ({ tunnelRef, databaseRef }: z.output<typeof TunnelPasswordSpec>) =>
    (tunnelRef === undefined) !== (databaseRef === undefined),
}

/** Temporary password for SSH logins to a tunnel, or to the SSH tunnel of a dedicated database. */
export const TunnelPassword = defineKind({
  kind: 'TunnelPassword',
  plural: 'tunnelpasswords',
  shortNames: ['tpw'],
  namespaced: true,
  description: 'Temporary password for SSH logins to a tunnel or a dedicated database.',
  spec: TunnelPasswordSpec,
  status: z.object({ ...commonStatus, expiresAt: endStatus }),
  immutable: ['spec'],
  rules: [ONE_OWNER],
  columns: [
    { name: 'Tunnel', type: 'string', jsonPath: '.spec.tunnelRef.name' },
    { name: 'Database', type: 'string', jsonPath: '.spec.databaseRef.name', priority: 1 },
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type TunnelPassword = Resource<typeof TunnelPassword>

/** Returns the expiry of a password, in milliseconds since the epoch. The maximum lifetime also applies to passwords made with kubectl. */
export const endOfPassword = ({ metadata, spec }: TunnelPassword): number => endWithin(PASSWORD_LIFE_MS, metadata, spec.expiresAt)
