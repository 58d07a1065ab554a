import type { ApiTokenReason } from '../../crds/api-token.ts'
import type { ArchiveReason } from '../../crds/database-archive.ts'
import type { ServerReason } from '../../crds/database-server.ts'
import type { DatabaseReason } from '../../crds/dedicated-database.ts'
import type { OrganizationReason } from '../../crds/organization.ts'
import type { PlanReason } from '../../crds/plan.ts'
import type { RegionReason } from '../../crds/region.ts'
import type { ExtensionReason, InstanceReason } from '../../crds/shared-instance.ts'
import type { TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import type { TunnelReason } from '../../crds/tunnel.ts'
import type { EndpointReason } from '../../crds/tunnel-endpoint.ts'
import type { PasswordReason } from '../../crds/tunnel-password.ts'
import type { WebhookReason } from '../../crds/tunnel-webhook.ts'

type ValueOf<T> = T[keyof T]

/** Reasons of `Ready` of all kinds. A reason has one meaning, whatever the kind. */
type Reason =
  | ValueOf<typeof ApiTokenReason>
  | ValueOf<typeof ArchiveReason>
  | ValueOf<typeof DatabaseReason>
  | ValueOf<typeof EndpointReason>
  | ValueOf<typeof ExtensionReason>
  | ValueOf<typeof InstanceReason>
  | ValueOf<typeof OrganizationReason>
  | ValueOf<typeof PasswordReason>
  | ValueOf<typeof PlanReason>
  | ValueOf<typeof RegionReason>
  | ValueOf<typeof ServerReason>
  | ValueOf<typeof TenantNamespaceReason>
  | ValueOf<typeof TunnelReason>
  | ValueOf<typeof WebhookReason>

/**
 * What an object that is not ready for a reason means.
 * - `failure`: a person must act. It is reported at once.
 * - `step`: the object is on the way to ready. It is reported when it lasts.
 * - `expected`: the object is as its owner wants it, or takes long by nature, or another condition reports it.
 */
export type Meaning = 'failure' | 'step' | 'expected'

/** The compiler asks for a line for each new reason. Reasons of ready objects are `expected`. */
const MEANINGS: Readonly<Record<Reason, Meaning>> = {
  // All kinds
  QuotaExceeded: 'failure',
  UnknownRegion: 'failure',
  NoAccess: 'failure',
  SecretTaken: 'failure',
  Disabled: 'expected',
  Expired: 'expected',
  Active: 'expected',
  Deleting: 'step',
  CleanupBlocked: 'failure',
  // Databases
  Claimed: 'expected',
  Claiming: 'step',
  Running: 'expected',
  WaitingForServer: 'step',
  StartingServer: 'step',
  CreatingDatabase: 'step',
  Updating: 'step',
  Restoring: 'expected',
  ServerUnavailable: 'failure',
  UnsupportedMotor: 'failure',
  UnsupportedAddOn: 'failure',
  NotRestorable: 'failure',
  TemplateNotFound: 'failure',
  TemplateInUse: 'step',
  TemplateNotCopyable: 'failure',
  SizeExceeded: 'failure',
  Suspended: 'failure',
  DatabaseMissing: 'failure',
  ExtensionUnsupported: 'expected',
  ExtensionConflict: 'expected',
  UnknownPlan: 'failure',
  PlanWithoutMotor: 'failure',
  StorageShrinks: 'failure',
  StorageNotExpandable: 'failure',
  // Database servers
  Starting: 'step',
  Stopping: 'step',
  MotorUnavailable: 'failure',
  Crashed: 'failure',
  AdminSecretLost: 'failure',
  Unsafe: 'failure',
  InstancesLeft: 'failure',
  Wraparound: 'failure',
  StatementStuck: 'failure',
  OutOfMemory: 'failure',
  // Backups
  Archiving: 'expected',
  FirstBackup: 'expected',
  Kept: 'expected',
  RepositoryUnavailable: 'failure',
  RepositoryFull: 'failure',
  ArchiveCorrupt: 'failure',
  BackupFailed: 'failure',
  ServerUnreachable: 'failure',
  AgentSilent: 'failure',
  // Tunnels
  Assigned: 'expected',
  NoActiveEndpoint: 'failure',
  EndpointMissing: 'failure',
  EndpointNotServed: 'failure',
  DrawingHostname: 'step',
  ObtainingCertificate: 'step',
  IssuerMissing: 'failure',
  RevokingCertificate: 'failure',
  CertificateNotRevoked: 'failure',
  // A password or webhook may be applied just before its tunnel.
  TunnelMissing: 'step',
  TooManyPasswords: 'failure',
  TooManyWebhooks: 'failure',
  ReceiverGone: 'failure',
  TooManyFailures: 'failure',
  AddressRefused: 'failure',
  SecretNameTaken: 'failure',
  // Endpoints
  DomainTaken: 'failure',
  EdgesFailing: 'failure',
  AddressPending: 'step',
  CertificateUnusable: 'failure',
  DnsRecordMissing: 'failure',
  AccountMissing: 'failure',
  // Regions, plans, tenants' namespaces
  Serving: 'expected',
  NoMotors: 'failure',
  IdTaken: 'failure',
  Offered: 'expected',
  NotOffered: 'failure',
  Bound: 'expected',
  NamespaceTaken: 'failure',
  NamespaceTerminating: 'step',
}

/** Returns the meaning of a reason of `Ready: False`; undefined for a reason of another program's object. */
export const meaningOf = (reason: string): Meaning | undefined =>
  Object.hasOwn(MEANINGS, reason) ? MEANINGS[reason as Reason] : undefined
