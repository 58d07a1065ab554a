import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import { type DedicatedDatabase, FirewallRule, firewallRulesOf, isCreated } from '../../crds/dedicated-database.ts'
import type { Condition } from '../../crds/kind.ts'
import { Motor } from '../../crds/motor.ts'
import { annotations, slugsOf } from '../../crds/names.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import { backupFieldsOf } from './database-backups.ts'
import { EXAMPLE } from '../openapi/openapi-schemas.ts'
import { createdAtOf } from '../resources/names-and-times.ts'
import { isInForce } from '../resources/password-in-force.ts'
import { SshConnectionView, sshConnectionView, SshTunnelView, sshTunnelView } from './ssh-tunnel-view.ts'

/** States of a database in the API (docs/api.md, "Dedicated databases"). */
export const DATABASE_STATUSES = ['provisioning', 'running', 'updating', 'restoring', 'failed', 'deleting'] as const
type DatabaseStatus = (typeof DATABASE_STATUSES)[number]

const ConnectionView = z
  .object({
    host: z.string(),
    port: z.int(),
    user: z.string(),
    password: z.string(),
    database: z.string().describe('Name of the database on its server.'),
    uri: z.string().describe('Connection string of the engine.'),
    ca: z.string().nullable().describe('PEM of the CA of the server’s certificate.'),
    internalHost: z.string().nullable().describe('Host for pods of the organization. Null in embedded mode.'),
    ssh: SshConnectionView.optional().describe('Connection through the SSH tunnel. Absent without one.'),
  })
  .meta({ id: 'DatabaseConnection' })
export type ConnectionView = z.output<typeof ConnectionView>

/** `database` of the REST API (docs/api.md, "Dedicated databases"). */
export const DatabaseView = z
  .object({
    id: z.uuid(),
    name: z.string(),
    organization: z.string(),
    namespace: z.string(),
    engine: Motor,
    region: z.string().describe('Name of the region.'),
    plan: z.string(),
    status: z.enum(DATABASE_STATUSES),
    statusReason: z.string().nullable().describe('Why the database is not running. Null while it runs.'),
    statusCode: z.string().nullable().describe('Reason as one word, such as `ServerUnavailable`. Null while the database runs.'),
    firewallRules: z
      .array(z.object({ cidr: z.string(), description: FirewallRule.shape.description }))
      .nullable()
      .describe(
        'Sources outside the cluster that may connect; an empty list: none. Null: all, or none when the plan is closed by default.',
      ),
    privateNetwork: z.boolean(),
    pointInTimeRecovery: z.object({ retentionDays: z.int() }).nullable(),
    sshTunnel: SshTunnelView,
    monitoring: z.boolean().describe('Whether the database is measured.'),
    restoreWindow: z
      .object({ earliest: z.iso.datetime(), latest: z.iso.datetime() })
      .nullable()
      .describe('Interval whose every moment can be restored, as verified in the repository. Null until the first backup.'),
    lastVerifiedRestore: z.iso
      .datetime()
      .nullable()
      .describe('Time at which its newest backup was last restored on trial and compared. Null until the first restore drill.'),
    engineVersion: z.string().nullable().describe('Version that the server reports. Null until the database has run.'),
    createdAt: z.iso.datetime(),
    createdBy: z
      .string()
      .nullable()
      .describe('User that created the database by this API. Null for a database created by kubectl.'),
    connection: ConnectionView.nullable().describe(
      'Only in the answers of `GET /v1/databases/{id}` and `POST …/password`, for editors and admins, while the status is `running` or `updating`. Otherwise null.',
    ),
  })
  .meta({
    id: 'Database',
    examples: [
      {
        id: '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10',
        name: 'shop',
        organization: EXAMPLE.organization,
        namespace: EXAMPLE.namespace,
        engine: EXAMPLE.motor,
        region: 'local',
        plan: 'small',
        status: 'provisioning',
        statusReason: 'the server of the database is being created',
        statusCode: 'StartingServer',
        firewallRules: [{ cidr: '203.0.113.0/24', description: 'office' }],
        privateNetwork: false,
        pointInTimeRecovery: null,
        sshTunnel: null,
        monitoring: false,
        restoreWindow: null,
        lastVerifiedRestore: null,
        engineVersion: null,
        createdAt: '2026-01-02T03:04:05.000Z',
        createdBy: 'local:alice',
        connection: null,
      },
    ],
  })
export type DatabaseView = z.output<typeof DatabaseView>

interface State {
  readonly status: DatabaseStatus
  readonly statusReason: string | null
  readonly statusCode: string | null
}

const state = (status: DatabaseStatus, statusCode: string, statusReason: string): State => ({ status, statusReason, statusCode })

/**
 * Returns the state of a database. While the operator has not reported on a change, a created database is `updating`, and another one is
 * `provisioning`. Pure.
 */
export function stateOf(database: DedicatedDatabase): State {
  const { metadata, status } = database
  const condition = conditionOf(database, 'Ready')
  if (metadata.deletionTimestamp !== undefined) return deletingBecause(condition)
  if (!condition || status?.phase === undefined) {
    if (database.spec.restoreFrom) return state('restoring', 'Restoring', 'the restore begins')
    return state('provisioning', 'StartingServer', 'the server of the database is being created')
  }
  if ((condition.observedGeneration ?? 0) < metadata.generation) {
    return state(isCreated(database) ? 'updating' : 'provisioning', 'Updating', 'the change is being applied')
  }
  if (status.phase === 'running') return { status: 'running', statusReason: null, statusCode: null }
  return state(status.phase, condition.reason, condition.message)
}

function deletingBecause(condition: Condition | undefined): State {
  if (condition?.status === 'False') return state('deleting', condition.reason, condition.message)
  return state('deleting', 'Deleting', 'the database and its server are being deleted')
}

/** Whether the connection of a database can be shown: while it runs, and while a change of a created database is being applied. */
export function isConnectable(database: DedicatedDatabase): boolean {
  const { status } = stateOf(database)
  return (status === 'running' || status === 'updating') && database.status?.secretRef !== undefined
}

/** Data of a view that the resource does not contain. */
export interface DatabaseAbout {
  /** Name of its region. */
  readonly region: string
  readonly connection?: ConnectionView | undefined
}

/** Renders a database. Pure. */
export function databaseView(database: DedicatedDatabase, { region, connection }: DatabaseAbout): DatabaseView {
  const { metadata, spec, status } = database
  return {
    id: metadata.uid,
    name: metadata.name,
    ...slugsOf(metadata.namespace),
    engine: spec.motor,
    region,
    plan: spec.plan,
    ...stateOf(database),
    firewallRules: firewallRulesOf(database)?.map((rule) => ({ ...rule })) ?? null,
    privateNetwork: spec.privateNetwork,
    pointInTimeRecovery: spec.pointInTimeRecovery ? { ...spec.pointInTimeRecovery } : null,
    sshTunnel: sshTunnelView(database),
    monitoring: spec.monitoring,
    ...backupFieldsOf(database),
    engineVersion: status?.engineVersion ?? null,
    createdAt: createdAtOf(metadata),
    createdBy: metadata.annotations?.[annotations.createdBy] ?? null,
    connection: connection ?? null,
  }
}

const decoded = z
  .base64()
  .min(1)
  .transform((text) => Buffer.from(text, 'base64').toString('utf8'))

/** Keys of a Service Binding Secret that the API shows; the Secret has more. */
const Binding = z.object({
  host: decoded,
  port: decoded.transform(Number).pipe(z.int()),
  username: decoded,
  password: decoded,
  database: decoded,
  uri: decoded,
  'ca.crt': decoded.optional(),
})

/**
 * Reads the connection of a database from the Secret that its status names, so that all its fields are of one version.
 * @returns undefined while the Secret is missing or incomplete, or has another password than the one in force
 * @throws StoreError
 */
export async function readConnection(
  store: Store,
  database: DedicatedDatabase,
  endpointOf: Parameters<typeof sshConnectionView>[1],
): Promise<ConnectionView | undefined> {
  const { metadata, status } = database
  const name = status?.secretRef?.name
  const secret = name === undefined ? undefined : await store.get(Secret, { namespace: metadata.namespace, name })
  if (!secret || !isInForce(secret, status)) return undefined
  const binding = Binding.safeParse(secret.data)
  return binding.success ? connectionView(binding.data, database, endpointOf) : undefined
}

function connectionView(
  binding: z.output<typeof Binding>,
  database: DedicatedDatabase,
  endpointOf: Parameters<typeof sshConnectionView>[1],
): ConnectionView {
  const { host, port, username: user, password, database: at, uri, 'ca.crt': ca } = binding
  const ssh = sshConnectionView(database, endpointOf)
  return {
    host,
    port,
    user,
    password,
    database: at,
    uri,
    ca: ca ?? null,
    internalHost: database.status?.internalHost ?? null,
    ...(ssh && { ssh }),
  }
}
