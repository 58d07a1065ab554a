import { z } from 'zod'
import { ServerTls } from './formats/server-tls.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { ExtensionName, Motor } from './motor.ts'

export const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9 ._/:@#+-]{0,62}$/
export const IDENTIFIER_RULE = 'must be 1 to 63 letters, digits, blanks or ._/:@#+- and start with a letter or digit'

/** Type of the condition about an instance's extensions: `False` while one of them cannot be installed. */
export const EXTENSIONS_INSTALLED = 'ExtensionsInstalled'

/** Reasons of `ExtensionsInstalled`. */
export const ExtensionReason = {
  /** The Region does not allow the extension, or the server does not offer it. */
  Unsupported: 'ExtensionUnsupported',
  /** An object of the tenant has a name that the extension uses. */
  Conflict: 'ExtensionConflict',
} as const

const EXTENSION_REASONS: ReadonlySet<string> = new Set(Object.values(ExtensionReason))

/** Whether a reason of `Ready` means that logins work, and an extension of the spec is missing. */
export const isExtensionReason = (reason: string): boolean => EXTENSION_REASONS.has(reason)

/** Reasons of an instance's `Ready` condition. */
export const InstanceReason = {
  /** The database exists and its login works. */
  Claimed: 'Claimed',
  /** The database exists; `spec.enabled` is false, so its login is disabled. */
  Disabled: 'Disabled',
  /** The namespace has reached its quota of instances. The instance gets a database when another instance is deleted. */
  QuotaExceeded: 'QuotaExceeded',
  /** No server of this motor has free capacity; a server is being started. */
  WaitingForServer: 'WaitingForServer',
  /** The database server does not respond. */
  ServerUnavailable: 'ServerUnavailable',
  UnknownRegion: 'UnknownRegion',
  UnsupportedMotor: 'UnsupportedMotor',
  TemplateNotFound: 'TemplateNotFound',
  /** The template has open sessions; it cannot be copied until they end. */
  TemplateInUse: 'TemplateInUse',
  /** The template has an object that the operator does not copy; the message names the object. */
  TemplateNotCopyable: 'TemplateNotCopyable',
  /** The database exceeds its size limit. Its login is disabled until the instance is reset or deleted. */
  SizeExceeded: 'SizeExceeded',
  /** A statement in the database forced a restart of its server. Its login is disabled until `status.suspension.until`. */
  Suspended: 'Suspended',
  /** The database or its server has disappeared. It is reported, never recreated empty without a request: a reset. */
  DatabaseMissing: 'DatabaseMissing',
  /** A Secret of another owner has the name of the credential Secret. That Secret is not changed. */
  SecretTaken: 'SecretTaken',
  /** The operator has no access to Secrets of this namespace: it has access in namespaces of organizations only. */
  NoAccess: 'NoAccess',
  Claiming: 'Claiming',
  Deleting: 'Deleting',
  /**
   * The server is unreachable, so the deletion of the database cannot be verified. A condition of this type says so too. The annotation
   * `mooring.dev/force-delete: "true"` releases the instance.
   */
  CleanupBlocked: 'CleanupBlocked',
} as const

export const SharedInstanceSpec = z.object({
  identifier: z.string().max(63).regex(IDENTIFIER, IDENTIFIER_RULE).describe('Label chosen by the client; need not be unique.'),
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id (`spec.id`) of the Region.'),
  motor: Motor,
  enabled: z.boolean().default(true).describe('Whether the login is enabled. False rejects logins and ends its connections.'),
  expiresAt: z.iso.datetime(UTC_RULE).max(32).optional().describe('Time at which the instance is deleted, in UTC.'),
  templateRef: z
    .object({ name: z.string().min(1).max(253).describe('Name of the SharedInstance.') })
    .optional()
    .describe('SharedInstance to copy the database from, in the same namespace.'),
  extensions: z
    .array(ExtensionName)
    .max(32)
    .default([])
    .describe('Extensions to install in the database. The Region must allow them.'),
  extensionsVersion: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe('Counter of checks. Add 1 to have the database looked at now, and missing extensions installed.'),
  passwordVersion: z.int().min(1).max(1_000_000).default(1).describe('Version of the password. Add 1 for a new password.'),
  resetVersion: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe('Reset counter. Add 1 to reset the database: it becomes empty, or a new copy of its template.'),
})

/** One database and one user on a database server that is shared with other instances. */
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
      .object({ name: z.string().max(253).describe('Name of the Secret.') })
      .optional()
      .describe('Secret with the credentials (Service Binding keys).'),
    host: z.string().max(253).optional().describe('Host to connect to.'),
    port: z.int().min(1).max(65_535).optional().describe('Port to connect to.'),
    tls: ServerTls.optional().describe('none: the server requires no TLS. Absent: it does, except on a loopback host.'),
    isEnabled: z.boolean().optional().describe('Whether the login is enabled.'),
    engineVersion: z.string().max(64).optional().describe('Engine version that the server reports.'),
    serverRef: z
      .object({
        name: z.string().max(253).describe('Name of the DatabaseServer.'),
        uid: z.string().max(64).optional().describe('Uid of the DatabaseServer when the database was last seen on it.'),
      })
      .optional()
      .describe('DatabaseServer that holds the database, in the namespace mooring-shared.'),
    extensions: z.array(ExtensionName).max(64).optional().describe('Extensions that are in the database.'),
    extensionsVersion: z.int().optional().describe('Value of `spec.extensionsVersion` when the database was last looked at.'),
    passwordVersion: z
      .int()
      .optional()
      .describe('Version of the current password. Absent while a lost password is being replaced.'),
    passwordId: z
      .string()
      .max(36)
      .optional()
      .describe(
        'Random id of the current password: that of the annotation mooring.dev/password-id of the Secret which holds it.',
      ),
    resetVersion: z.int().optional().describe('Value of `spec.resetVersion` at the last completed reset.'),
    suspension: z
      .object({
        until: z.string().max(30).describe('Time until which logins are rejected, in UTC.'),
        count: z.int().min(1).describe('Number of suspensions in succession, each of which takes longer.'),
      })
      .optional()
      .describe('Last suspension: a statement in the database could not be ended, so that its server had to be restarted.'),
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

/** Whether the instance has ever been claimed. A claimed instance may hold data: only a reset recreates its database. */
export const isClaimed = ({ status }: SharedInstance): boolean => status?.name !== undefined
