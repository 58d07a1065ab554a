import { z } from 'zod'
import { PointInTimeRecovery, RestoreFrom } from '../../crds/parts/point-in-time-recovery.ts'
import {
  DATABASE_NAME,
  DATABASE_NAME_MAX,
  DATABASE_NAME_RULE,
  FIREWALL_RULES_MAX,
  RequestedCidr,
} from '../../crds/dedicated-database.ts'
import { ruleMessage } from '../../shared/field-errors.ts'
import type { Patch } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import { NO_CONTROLS, NO_CONTROLS_RULE } from '../http/request-parser.ts'
import type { BodyCheck } from '../http/route.ts'
import { EXAMPLE } from '../openapi/openapi-schemas.ts'
import { Time } from '../resources/names-and-times.ts'
import { Slug } from '../tenancy/tenancy-deps.ts'
import { checkSshKeys, SshTunnelBody } from './ssh-tunnel-view.ts'

const Name = z.string(ruleMessage(DATABASE_NAME_RULE)).regex(DATABASE_NAME, DATABASE_NAME_RULE).max(DATABASE_NAME_MAX)
const PlanId = z.string().min(1).max(253)

const Rule = z.object(
  {
    cidr: RequestedCidr,
    description: z.string().max(200).regex(NO_CONTROLS, NO_CONTROLS_RULE).optional().describe('Description for people.'),
  },
  { error: ({ code }) => (code === 'invalid_type' ? 'must be an object such as {"cidr": "203.0.113.0/24"}' : undefined) },
)

const FirewallRules = z
  .array(Rule)
  .max(FIREWALL_RULES_MAX)
  .nullish()
  .describe(
    'Sources outside the cluster that may connect. Ranges may overlap and repeat. Null: every source, or none when the plan is closed by default. An empty list: none. In the SSH tunnel, the address of the SSH client counts.',
  )
const PrivateNetwork = z
  .boolean()
  .nullish()
  .describe('Whether only pods of the organization can connect. In embedded mode: only this machine. Null: false.')

const Monitoring = z
  .boolean()
  .nullish()
  .describe(
    'Whether the database is measured (`GET …/metrics`). In a cluster its server then has an exporter for Prometheus, so a change of this field restarts the server. Null: false.',
  )

const Backups = PointInTimeRecovery.nullish().describe(
  'Backups from which any moment of the retention can be restored; for PostgreSQL. Null removes the add-on and the backups.',
)

/** Body of `POST /v1/databases`. The schema does not check whether region, engine and plan exist: that is 422, not 400. */
export const CreateDatabaseBody = z
  .object({
    name: Name.describe('Name of the database, unique in its namespace.'),
    organization: Slug.optional().describe('Slug of the organization. Without it and `namespace`: the default namespace.'),
    namespace: Slug.optional().describe('Slug of the namespace.'),
    engine: z.string().min(1).max(64).describe('Id of an engine in `GET /v1/engines` that the region runs.'),
    region: z.string().min(1).max(253).describe('Id of a region in `GET /v1/regions`.'),
    plan: PlanId.describe('Id of a plan in `GET /v1/databases/create/metadata`.'),
    firewallRules: FirewallRules,
    privateNetwork: PrivateNetwork,
    sshTunnel: SshTunnelBody,
    monitoring: Monitoring,
    pointInTimeRecovery: Backups,
    restoreFrom: RestoreFrom.extend({ time: Time })
      .nullish()
      .describe('Database and moment whose data the new database starts with. The moment is within the restore window.'),
  })
  .meta({
    id: 'CreateDatabase',
    examples: [
      {
        name: 'shop',
        organization: EXAMPLE.organization,
        namespace: EXAMPLE.namespace,
        engine: EXAMPLE.motor,
        region: EXAMPLE.region,
        plan: 'small',
        firewallRules: [{ cidr: '203.0.113.0/24', description: 'office' }],
      },
    ],
  })
export type CreateDatabaseBody = z.output<typeof CreateDatabaseBody>

/** Body of `PATCH /v1/databases/{id}`: a JSON merge patch (RFC 7396); an empty one changes nothing. */
export const PatchDatabaseBody = z
  .object({
    plan: PlanId.optional().describe('Id of another plan for the same engine, with the same storage or more.'),
    firewallRules: FirewallRules,
    privateNetwork: PrivateNetwork,
    sshTunnel: SshTunnelBody,
    monitoring: Monitoring,
    pointInTimeRecovery: Backups,
  })
  .meta({
    id: 'PatchDatabase',
    examples: [{ firewallRules: [{ cidr: '203.0.113.0/24' }] }, { privateNetwork: null }, { sshTunnel: { authMode: 'both' } }],
  })
export type PatchDatabaseBody = z.output<typeof PatchDatabaseBody>

/** Requires both slugs of a namespace or none, and whole SSH keys. */
export const checkNewDatabase: BodyCheck = (body, named) => {
  const [given, ...others] = (['organization', 'namespace'] as const).filter((field) => field in body)
  const keys = checkSshKeys(body, named)
  if (given === undefined || others.length > 0) return keys
  const missing = given === 'organization' ? 'namespace' : 'organization'
  return [{ field: missing, message: `is required together with ${given}` }, ...keys]
}

function unsupported(wrong: readonly (readonly [field: string, message: string])[]): ApiError {
  const message = wrong.map(([field, why]) => `${field}: ${why}`).join('; ')
  return new ApiError('unsupported_addon', message, { details: wrong.map(([field, why]) => ({ field, message: why })) })
}

/** Error of a DELETE with `keepBackups=true`. */
export const noBackups = (): ApiError =>
  unsupported([['keepBackups', 'this database has no point-in-time recovery, and so no backups; leave it out']])

/** Rejects monitoring in an installation that keeps no measured values. @throws ApiError `unsupported_addon` */
export function requireMonitoring(records: object | undefined, { monitoring }: Pick<PatchDatabaseBody, 'monitoring'>): void {
  if (!monitoring || records) return
  throw unsupported([['monitoring', 'this installation has no journal, which keeps the measured values; leave it out']])
}

/** Returns the merge patch of the spec for a body. Null restores a default, which removes the add-on. Pure. */
export function specPatch(body: PatchDatabaseBody): Patch {
  const { plan, firewallRules, privateNetwork, sshTunnel, monitoring, pointInTimeRecovery } = body
  return {
    ...(plan !== undefined && { plan }),
    ...(firewallRules !== undefined && { firewallRules }),
    ...(privateNetwork !== undefined && { privateNetwork }),
    ...(sshTunnel !== undefined && { sshTunnel }),
    ...(monitoring !== undefined && { monitoring }),
    ...(pointInTimeRecovery !== undefined && { pointInTimeRecovery }),
  }
}
