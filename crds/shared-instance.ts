import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { ExtensionName } from './formats/extensions.ts'
import { Motor } from './motor.ts'

export const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9 ._/:@#+-]{0,62}$/
export const IDENTIFIER_RULE = 'must be 1 to 63 letters, digits, blanks or ._/:@#+- and start with a letter or digit'

/** Condition of an instance whose extensions are not all installed: `False` as long as one is refused. */
export const EXTENSIONS_INSTALLED = 'ExtensionsInstalled'

/** Reasons of `ExtensionsInstalled`. */
export const ExtensionReason = {
  /** The Region does not allow it, or the server does not have it. */
  Unsupported: 'ExtensionUnsupported',
  /** An object of the tenant has a name that the extension needs. */
  Conflict: 'ExtensionConflict',
} as const

/** Reasons of an instance's `Ready` condition. */
export const InstanceReason = {
  /** The database is there and its login works, or is switched off as `spec.enabled` says. */
  Claimed: 'Claimed',
  Disabled: 'Disabled',
  /** It has no database yet, and its namespace has as many instances as it may have: it waits until one of them goes. */
  QuotaExceeded: 'QuotaExceeded',
  /** No server of that motor has a free place yet; one is being started. */
  WaitingForServer: 'WaitingForServer',
  /** The server it lives on is not answering. */
  ServerUnavailable: 'ServerUnavailable',
  UnknownRegion: 'UnknownRegion',
  UnsupportedMotor: 'UnsupportedMotor',
  TemplateNotFound: 'TemplateNotFound',
  /** Sessions are open on the template; it cannot be copied until they end. */
  TemplateInUse: 'TemplateInUse',
  /** The database grew past its limit: no login until it is reset or deleted. */
  SizeExceeded: 'SizeExceeded',
  /** The engine's catalog no longer has the database: shown, never silently made anew and empty. */
  DatabaseMissing: 'DatabaseMissing',
  /** A Secret of another owner has the name of its own: it is left alone. */
  SecretTaken: 'SecretTaken',
  /** The operator may keep Secrets in the namespaces of organizations alone, and this is none (yet). */
  NoAccess: 'NoAccess',
  Claiming: 'Claiming',
  Deleting: 'Deleting',
  /**
   * The server cannot be reached, so absence cannot be verified; a condition of this type says so too. The annotation
   * `mooring.dev/force-delete: "true"` releases it.
   */
  CleanupBlocked: 'CleanupBlocked',
} as const

export const SharedInstanceSpec = z.object({
  identifier: z.string().max(63).regex(IDENTIFIER, IDENTIFIER_RULE).describe('Label chosen by the caller; need not be unique.'),
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id of the Region: its `spec.id`.'),
  motor: Motor,
  enabled: z.boolean().default(true).describe('False: no login, sessions ended.'),
  expiresAt: z.iso.datetime(UTC_RULE).max(32).optional().describe('When it deletes itself, in UTC.'),
  templateRef: z
    .object({ name: z.string().min(1).max(253).describe('Its name.') })
    .optional()
    .describe('SharedInstance of the same namespace that it starts as a copy of.'),
  extensions: z
    .array(ExtensionName)
    .max(32)
    .default([])
    .describe('Extensions of the engine that the database has, from those that the Region allows.'),
  passwordVersion: z.int().min(1).max(1_000_000).default(1).describe('Raise it by one for a new password.'),
  resetVersion: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe('Raise it by one to empty the database (or copy its template again).'),
})

/** One database and one user on a database server that other instances share. */
export const SharedInstance = defineKind({
  kind: 'SharedInstance',
  plural: 'sharedinstances',
  shortNames: ['si'],
  namespaced: true,
  description: 'One database and one user on a shared database server.',
  spec: SharedInstanceSpec,
  status: z.object({
    ...commonStatus,
    name: z.string().max(63).optional().describe('Name of the database.'),
    user: z.string().max(63).optional().describe('Name of the login.'),
    secretRef: z
      .object({ name: z.string().max(253).describe('Its name.') })
      .optional()
      .describe('Secret with the credentials (Service Binding keys).'),
    host: z.string().max(253).optional().describe('Host to connect to.'),
    port: z.int().min(1).max(65_535).optional().describe('Port to connect to.'),
    isEnabled: z.boolean().optional().describe('Whether its login is accepted.'),
    engineVersion: z.string().max(64).optional().describe('What the server itself reports.'),
    serverRef: z
      .object({ name: z.string().max(253).describe('Its name.') })
      .optional()
      .describe('DatabaseServer in mooring-shared.'),
    extensions: z.array(ExtensionName).max(32).optional().describe('Extensions that were installed.'),
    passwordVersion: z.int().optional().describe('Version of the password in force.'),
    resetVersion: z.int().optional().describe('The last reset carried out.'),
  }),
  immutable: ['spec.region', 'spec.motor', 'spec.templateRef'],
  columns: [
    { name: 'Identifier', type: 'string', jsonPath: '.spec.identifier' },
    { name: 'Motor', type: 'string', jsonPath: '.spec.motor' },
    ...READY_COLUMNS,
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Port', type: 'integer', jsonPath: '.status.port' },
    { name: 'Database', type: 'string', jsonPath: '.status.name' },
    AGE_COLUMN,
  ],
})
export type SharedInstance = Resource<typeof SharedInstance>

/** Claimed once: from then on it holds data, and its database is never made anew but by a reset. */
export const isClaimed = ({ status }: SharedInstance): boolean => status?.name !== undefined
