import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'
import { Motor } from './motor.ts'

export const TENANCIES = ['shared', 'dedicated', 'internal'] as const

/** Type of the condition that blocks the deletion of a server: `True` while instances are on it. */
export const DELETION_HELD = 'DeletionHeld'

/** Type of the condition of a server that has used half of its transaction ids: `True` until VACUUM has freed enough of them. */
export const TRANSACTION_IDS_LOW = 'TransactionIdsLow'

/** Reasons of a server's `Ready` condition. */
export const ServerReason = {
  Running: 'Running',
  Starting: 'Starting',
  /** Binaries or container image of this motor are not available. */
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
} as const
export type ServerReason = (typeof ServerReason)[keyof typeof ServerReason]

export const DatabaseServerSpec = z.object({
  motor: Motor,
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id of the Region.'),
  tenancy: z
    .enum(TENANCIES)
    .default('shared')
    .describe('Use of the server: shared by many instances, dedicated to one, or internal to Mooring.'),
  capacity: z.int().min(1).max(20_000).default(50).describe('Maximum number of shared instances on this server.'),
  plan: z.string().min(1).max(63).optional().describe('Name of the Plan that sets the size of the server.'),
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
  immutable: ['spec.motor', 'spec.region', 'spec.tenancy'],
  columns: [
    { name: 'Motor', type: 'string', jsonPath: '.spec.motor' },
    ...READY_COLUMNS,
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Port', type: 'integer', jsonPath: '.status.port' },
    AGE_COLUMN,
  ],
})
export type DatabaseServer = Resource<typeof DatabaseServer>
