import { z } from 'zod'
import { ServerTls } from './formats/server-tls.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { Motor } from './motor.ts'

export const TENANCIES = ['shared', 'dedicated', 'internal'] as const

/** Type of the condition that blocks the deletion of a server: `True` while instances are on it. */
export const DELETION_HELD = 'DeletionHeld'

/** Type of the condition of a server that has used half of its transaction ids: `True` until VACUUM has freed enough of them. */
export const TRANSACTION_IDS_LOW = 'TransactionIdsLow'

/**
 * Type of the condition of a running server whose present spec is not in force: `True` until it is. The message says what it waits for.
 */
export const UPDATE_HELD = 'UpdateHeld'

/**
 * Type of the condition of a server that was restarted because a statement could not be ended. Its `lastTransitionTime` is that of the last such
 * restart.
 */
export const FORCED_RESTART = 'ForcedRestart'

/**
 * Type of the condition of a server that ended for lack of memory while operations of tenants ran, which were suspended. Its
 * `lastTransitionTime` is that of the last such end.
 */
export const OUT_OF_MEMORY = 'OutOfMemory'

/** Reasons of a server's `Ready` condition. */
export const ServerReason = {
  Running: 'Running',
  Starting: 'Starting',
  /** Binaries or container image of this motor are not available, or of another series than those that made the data. */
  MotorUnavailable: 'MotorUnavailable',
  /** The engine exited or failed to start; the message quotes the end of its log. */
  Crashed: 'Crashed',
  Stopping: 'Stopping',
  /** The Secret with the administrator's password is missing. The engine still has that password: restore the Secret. */
  AdminSecretLost: 'AdminSecretLost',
  /** A setting or file of the server would let a tenant become superuser; the message names it. */
  Unsafe: 'Unsafe',
  /** Reason of `DeletionHeld`. */
  InstancesLeft: 'InstancesLeft',
  /** Reason of `TransactionIdsLow`. */
  Wraparound: 'Wraparound',
  /** Reason of `UpdateHeld`: the server is being replaced by one with the new spec. */
  Updating: 'Updating',
  /** Reason of `UpdateHeld`: the storage class does not allow the volume to grow. */
  StorageNotExpandable: 'StorageNotExpandable',
  /** Reason of `ForcedRestart`. */
  StatementStuck: 'StatementStuck',
  /** Reason of `OutOfMemory`. */
  OutOfMemory: 'OutOfMemory',
} as const
export type ServerReason = (typeof ServerReason)[keyof typeof ServerReason]

const Prefix = z.uuid('must be the uid of a DedicatedDatabase').max(36)

export const DatabaseServerSpec = z.object({
  motor: Motor,
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id of the Region.'),
  tenancy: z
    .enum(TENANCIES)
    .default('shared')
    .describe('Use of the server: shared by many instances, dedicated to one, or internal to Mooring.'),
  capacity: z.int().min(1).max(20_000).default(50).describe('Maximum number of shared instances on this server.'),
  plan: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe('Name of the Plan that sets the size of the server, when `size` is absent.'),
  size: z
    .object({
      cpu: z.number().min(0.1).max(256).describe('CPU cores.'),
      memoryMiB: z.int().min(128).max(4_194_304).describe('Memory in MiB.'),
      storageGiB: z.int().min(1).max(65_536).describe('Storage in GiB. A volume never shrinks.'),
    })
    .optional()
    .describe('Size of a dedicated server, from which the settings of its engine follow.'),
  access: z
    .object({
      organization: z.string().min(1).max(30).describe('Slug of the organization whose pods may connect.'),
      sources: z
        .array(z.string().min(1).max(43))
        .max(100)
        .optional()
        .describe('Addresses and ranges outside the cluster that may connect. Absent: all. An empty list: none.'),
      isPrivate: z.boolean().default(false).describe('Whether the server has no address outside the cluster.'),
      edges: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Name of the TunnelEndpoint whose edges may connect. Absent: no edge may.'),
    })
    .optional()
    .describe('Who may connect to a dedicated server.'),
  archive: z
    .object({ prefix: Prefix.describe('Prefix of its objects in the repository of backups.') })
    .optional()
    .describe('Backups of a dedicated server.'),
  monitoring: z
    .object({
      namespace: z.string().min(1).max(63).describe('Namespace of the DedicatedDatabase.'),
      database: z.string().min(1).max(63).describe('Name of the DedicatedDatabase.'),
    })
    .optional()
    .describe('Database whose names label the metrics of a dedicated server. Absent: the server has no exporter.'),
  restore: z
    .object({
      prefix: Prefix.describe('Prefix of the backups in the repository.'),
      time: z.iso.datetime(UTC_RULE).max(32).describe('Moment to restore.'),
    })
    .optional()
    .describe('Backups with which a new server starts.'),
})

/** Running database engine: a StatefulSet in cluster mode, a child process in embedded mode. */
export const DatabaseServer = defineKind({
  kind: 'DatabaseServer',
  plural: 'databaseservers',
  shortNames: ['dbs'],
  namespaced: true,
  description: 'One running database engine.',
  spec: DatabaseServerSpec,
  status: z.object({
    ...commonStatus,
    host: z.string().max(253).optional().describe('Host that clients connect to.'),
    port: z.int().min(1).max(65_535).optional().describe('Port that clients connect to.'),
    internalHost: z.string().max(253).optional().describe('Host that pods of the cluster connect to.'),
    edgeAddress: z
      .object({
        host: z.string().max(253).describe('Host that edges connect to.'),
        port: z.int().min(1).max(65_535).describe('Port that edges connect to.'),
        source: z
          .string()
          .max(45)
          .optional()
          .describe('Local address of the connections of edges. Absent: the choice of their machine.'),
      })
      .optional()
      .describe('Address for the edges in `spec.access`. Absent when no edge may connect.'),
    tls: ServerTls.optional().describe('none: the server requires no TLS. Absent: it does, except on a loopback host.'),
    extensions: z
      .array(
        z.object({
          name: z.string().max(63).describe('Name of the extension.'),
          version: z.string().max(64).describe('Version of the extension.'),
        }),
      )
      .max(512)
      .optional()
      .describe('Extensions that the server offers.'),
    engineVersion: z.string().max(64).optional().describe('Engine version that the server reports.'),
  }),
  immutable: ['spec.motor', 'spec.region', 'spec.tenancy', 'spec.restore'],
  columns: [
    { name: 'Motor', type: 'string', jsonPath: '.spec.motor' },
    ...READY_COLUMNS,
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Port', type: 'integer', jsonPath: '.status.port' },
    AGE_COLUMN,
  ],
})
export type DatabaseServer = Resource<typeof DatabaseServer>
