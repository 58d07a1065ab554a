import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'
import { Motor } from './motor.ts'

export const TENANCIES = ['shared', 'dedicated', 'internal'] as const

/** Condition of a server that is deleted while instances live on it: `True` until they are gone. */
export const DELETION_HELD = 'DeletionHeld'

/** Condition of a server that has used up half of its transaction ids: `True` until enough of them are free again. */
export const TRANSACTION_IDS_LOW = 'TransactionIdsLow'

/** Reasons of a server's `Ready` condition. */
export const ServerReason = {
  Running: 'Running',
  Starting: 'Starting',
  /** The engine's binaries or image for this motor are not to be had. */
  MotorUnavailable: 'MotorUnavailable',
  /** The engine ended or refused to start; the message has its last words. */
  Crashed: 'Crashed',
  Stopping: 'Stopping',
  /** The Secret with the admin's password is gone, and the engine keeps the password: put the Secret back. */
  AdminSecretLost: 'AdminSecretLost',
  /** The server's files would let a tenant become superuser: the message says by what. */
  Unsafe: 'Unsafe',
  /** Of `DeletionHeld`. */
  InstancesLeft: 'InstancesLeft',
  /** Of `TransactionIdsLow`. */
  Wraparound: 'Wraparound',
} as const
export type ServerReason = (typeof ServerReason)[keyof typeof ServerReason]

export const DatabaseServerSpec = z.object({
  motor: Motor,
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id of the Region.'),
  tenancy: z
    .enum(TENANCIES)
    .default('shared')
    .describe('One database for each of many instances, all of the server for one, or for what Mooring itself keeps.'),
  capacity: z.int().min(1).max(20_000).default(50).describe('Shared instances placed here at the most.'),
  plan: z.string().min(1).max(63).optional().describe('Name of the Plan that sizes it.'),
})

/** One running engine: a StatefulSet in a cluster, a child process in embedded mode. */
export const DatabaseServer = defineKind({
  kind: 'DatabaseServer',
  plural: 'databaseservers',
  shortNames: ['dbs'],
  namespaced: true,
  description: 'One running database engine.',
  spec: DatabaseServerSpec,
  status: z.object({
    ...commonStatus,
    host: z.string().max(253).optional().describe('Host that callers connect to.'),
    port: z.int().min(1).max(65_535).optional().describe('Port that callers connect to.'),
    extensions: z
      .array(z.object({ name: z.string().max(63).describe('Its name.'), version: z.string().max(64).describe('Its version.') }))
      .max(512)
      .optional()
      .describe('Extensions that the server offers.'),
    engineVersion: z.string().max(64).optional().describe('What the server itself reports.'),
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
