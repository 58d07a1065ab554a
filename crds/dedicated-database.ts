import { z } from 'zod'
import { ADDRESS_FORM, ADDRESS_RULE, celOf } from './formats/address-list.ts'
import { ServerTls } from './formats/server-tls.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, type Rule } from './kind.ts'
import { ExtensionName, Motor } from './motor.ts'
import { PointInTimeRecovery, RestoreFrom, RestoreWindow } from './parts/point-in-time-recovery.ts'
import { SshTunnel, SshTunnelStatus } from './parts/ssh-tunnel.ts'
import { UsagePeriods } from './parts/usage-period.ts'

/** Reasons of a dedicated database's `Ready` condition. */
export const DatabaseReason = {
  /** The database accepts logins with the credentials of its Secret. */
  Running: 'Running',
  /** The server of the database is being created or started. */
  StartingServer: 'StartingServer',
  /** The database and its login are being created. */
  CreatingDatabase: 'CreatingDatabase',
  /** Data are being restored from the backups of another database. */
  Restoring: 'Restoring',
  /** `restoreFrom` cannot be done: its database, its time or its motor does not fit. The message has the reason. */
  NotRestorable: 'NotRestorable',
  /** A change of the plan, the password or an add-on is being applied. */
  Updating: 'Updating',
  /** The namespace has reached its quota of dedicated databases. */
  QuotaExceeded: 'QuotaExceeded',
  UnknownRegion: 'UnknownRegion',
  /** The Region does not run the motor. */
  UnsupportedMotor: 'UnsupportedMotor',
  UnknownPlan: 'UnknownPlan',
  /** The engine of the database has no point-in-time recovery. */
  UnsupportedAddOn: 'UnsupportedAddOn',
  /** The plan does not allow the motor. */
  PlanWithoutMotor: 'PlanWithoutMotor',
  /** The plan has less storage than the database: storage only grows. */
  StorageShrinks: 'StorageShrinks',
  /** The storage class of the volume does not allow growth; the message names it. */
  StorageNotExpandable: 'StorageNotExpandable',
  /** The server does not respond, has failed, or was deleted; the message has the reason. */
  ServerUnavailable: 'ServerUnavailable',
  /** The Secret with the name of the credential Secret has another owner. The operator does not change it. */
  SecretTaken: 'SecretTaken',
  /** The namespace belongs to no organization, or the operator has no permission to write Secrets in it. */
  NoAccess: 'NoAccess',
  Deleting: 'Deleting',
} as const
export type DatabaseReason = (typeof DatabaseReason)[keyof typeof DatabaseReason]

/** States of a dedicated database (docs/dedicated.md, "States"). */
export const DATABASE_PHASES = ['provisioning', 'running', 'updating', 'restoring', 'failed', 'deleting'] as const
export type DatabasePhase = (typeof DATABASE_PHASES)[number]

export const DATABASE_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
export const DATABASE_NAME_MAX = 40
export const DATABASE_NAME_RULE = 'must be 1 to 40 lower-case letters, digits and hyphens, a letter or digit at both ends'

/** Version of the meaning of `firewallRules`: an empty list admits no source. */
export const RULES_VERSION = 2

/** Maximum number of firewall rules of a database. */
export const FIREWALL_RULES_MAX = 100

const Cidr = z.string().min(1).max(43)
const CIDR_TEXT = 'IP address or range in CIDR notation, such as 203.0.113.0/24.'

/** Source of a firewall rule in a request. */
export const RequestedCidr = Cidr.refine(ADDRESS_RULE.holds, {
  error: ({ input }) => ADDRESS_RULE.messageOf(String(input)),
}).describe(CIDR_TEXT)

export const FirewallRule = z.object({
  cidr: Cidr.refine(ADDRESS_FORM.holds, ADDRESS_FORM.message).describe(CIDR_TEXT),
  description: z.string().max(200).optional().describe('Description for people.'),
})
type FirewallRule = z.output<typeof FirewallRule>

export const DedicatedDatabaseSpec = z.object({
  name: z
    .string()
    .regex(DATABASE_NAME, DATABASE_NAME_RULE)
    .max(DATABASE_NAME_MAX)
    .optional()
    .describe('Name of the database. Default, and the only allowed value: the name of the object.'),
  motor: Motor,
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id (`spec.id`) of the Region.'),
  plan: z.string().min(1).max(63).describe('Name of the Plan that sets the size. Storage only grows.'),
  firewallRules: z
    .array(FirewallRule)
    .max(FIREWALL_RULES_MAX)
    .optional()
    .describe(
      'Sources outside the cluster that may connect, also through the SSH tunnel. Absent: all, or none where the Plan has `closedByDefault`. An empty list: none. Pods of the organization may always connect.',
    ),
  privateNetwork: z
    .boolean()
    .default(false)
    .describe(
      'Whether only pods of the organization’s namespaces can connect, and no source outside. In embedded mode: only this machine.',
    ),
  monitoring: z
    .boolean()
    .default(false)
    .describe(
      'Whether the server is measured, for the metrics of the database. In a cluster its pod then has an exporter for Prometheus, so a change of this field restarts the server.',
    ),
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
  sshTunnel: SshTunnel.optional().describe('SSH tunnel to the database through the edges. Absent: none.'),
  pointInTimeRecovery: PointInTimeRecovery.optional().describe(
    'Backups from which any moment of the retention can be restored. Removing this removes the backups.',
  ),
  backupVersion: z.int().min(0).max(1_000_000).default(0).describe('Number of requested backups. Add 1 for a backup now.'),
  restoreFrom: RestoreFrom.optional().describe('Database whose data at a moment the new database starts with. Cannot change.'),
})
type Spec = z.output<typeof DedicatedDatabaseSpec>

const NAMED: Rule = {
  cel: '!has(self.spec.name) || self.spec.name == self.metadata.name',
  message: 'must be equal to spec.name, if that is given',
  field: 'metadata.name',
  holds: ({ name: given }: Spec, { name }) => given === undefined || given === name,
}

const SHORT_NAME: Rule = {
  cel: `self.metadata.name.size() <= ${DATABASE_NAME_MAX} && self.metadata.name.matches('${DATABASE_NAME.source}')`,
  message: DATABASE_NAME_RULE,
  field: 'metadata.name',
  holds: (_spec: Spec, { name }) => name.length <= DATABASE_NAME_MAX && DATABASE_NAME.test(name),
}

const CIDRS: Rule = {
  cel: `!has(self.firewallRules) || self.firewallRules.all(rule, ${celOf('rule.cidr')})`,
  message: `firewallRules ${ADDRESS_RULE.ofList}`,
  field: 'spec.firewallRules',
  holds: ({ firewallRules = [] }: Spec) => firewallRules.every(({ cidr }) => ADDRESS_RULE.holds(cidr)),
}

/** Database with a server of its own, sized by a Plan. */
export const DedicatedDatabase = defineKind({
  kind: 'DedicatedDatabase',
  plural: 'dedicateddatabases',
  shortNames: ['ddb'],
  namespaced: true,
  description: 'Database with a server of its own.',
  spec: DedicatedDatabaseSpec,
  status: z.object({
    ...commonStatus,
    phase: z.enum(DATABASE_PHASES).optional().describe('State of the database.'),
    name: z.string().max(63).optional().describe('Name of the database on the server.'),
    user: z.string().max(63).optional().describe('Name of the login.'),
    secretRef: z
      .object({ name: z.string().max(253).describe('Name of the Secret.') })
      .optional()
      .describe('Secret with the credentials (Service Binding keys).'),
    host: z.string().max(253).optional().describe('Host to connect to.'),
    port: z.int().min(1).max(65_535).optional().describe('Port to connect to.'),
    internalHost: z.string().max(253).optional().describe('Host to connect to from pods of the organization.'),
    tls: ServerTls.optional().describe('none: the server requires no TLS. Absent: it does, except on a loopback host.'),
    engineVersion: z.string().max(64).optional().describe('Engine version that the server reports.'),
    serverRef: z
      .object({ name: z.string().max(253).describe('Name of the DatabaseServer.') })
      .optional()
      .describe('DatabaseServer of the database, in the namespace mooring-shared.'),
    passwordVersion: z.int().optional().describe('Version of the current password.'),
    passwordId: z
      .string()
      .max(36)
      .optional()
      .describe(
        'Random id of the current password: that of the annotation mooring.dev/password-id of the Secret which holds it.',
      ),
    plan: z.string().max(63).optional().describe('Name of the Plan in force.'),
    storageGiB: z.int().optional().describe('Storage of the server in GiB.'),
    restoreWindow: RestoreWindow.optional().describe('Interval whose every moment can be restored.'),
    lastVerifiedRestore: z.string().max(32).optional().describe('Time at which a restore drill of its backups last succeeded.'),
    sshTunnel: SshTunnelStatus.optional().describe('SSH tunnel. Absent without `spec.sshTunnel`.'),
    usagePeriods: UsagePeriods.optional(),
    extensions: z.array(ExtensionName).max(64).optional().describe('Extensions that are in the database.'),
    extensionsVersion: z.int().optional().describe('Value of `spec.extensionsVersion` when the database was last looked at.'),
    rulesVersion: z
      .int()
      .optional()
      .describe('Version of the meaning of `firewallRules`. Absent where an empty list was written as the default: all sources.'),
  }),
  immutable: ['spec.region', 'spec.motor', 'spec.restoreFrom'],
  rules: [NAMED, SHORT_NAME, CIDRS],
  columns: [
    { name: 'Motor', type: 'string', jsonPath: '.spec.motor' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    { name: 'Status', type: 'string', jsonPath: '.status.phase' },
    ...READY_COLUMNS,
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Port', type: 'integer', jsonPath: '.status.port' },
    AGE_COLUMN,
  ],
})
export type DedicatedDatabase = Resource<typeof DedicatedDatabase>

/**
 * Whether the rules of a database are those of a former version, which stored an empty list where there was none, and admitted all sources.
 * The operator removes such a list.
 */
export const hasFormerRules = ({ spec, status }: Pick<DedicatedDatabase, 'spec' | 'status'>): boolean =>
  spec.firewallRules?.length === 0 && status?.phase !== undefined && status.rulesVersion === undefined

/** Firewall rules of a database; undefined when it has no list, and its Plan decides. */
export const firewallRulesOf = (database: Pick<DedicatedDatabase, 'spec' | 'status'>): readonly FirewallRule[] | undefined =>
  hasFormerRules(database) ? undefined : database.spec.firewallRules

/** Whether the database has been created on its server, and so may hold data. */
export const isCreated = ({ status }: DedicatedDatabase): boolean => status?.name !== undefined
