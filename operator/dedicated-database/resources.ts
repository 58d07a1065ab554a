import type { DatabaseServer } from '../../crds/database-server.ts'
import { type DedicatedDatabase, firewallRulesOf } from '../../crds/dedicated-database.ts'
import type { Draft } from '../../crds/kind.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Plan } from '../../crds/plan.ts'
import { tenantSuffix } from '../shared-instance/kept-secret.ts'

type ServerSpec = DatabaseServer['spec']
export type Access = NonNullable<ServerSpec['access']>
export type Size = NonNullable<ServerSpec['size']>

/** Properties of a Plan that a server depends on. */
export type PlanSize = Pick<Plan['spec'], 'cpu' | 'memoryMiB' | 'storageGiB' | 'closedByDefault'>

/** Part of a server's spec that changes with its database. */
export interface ServerShape {
  readonly size: Size
  readonly access: Access
  /** Undefined: the server makes no backups. */
  readonly archive?: ServerSpec['archive']
  /** Undefined: the server has no exporter. */
  readonly monitoring?: ServerSpec['monitoring']
}

/** Name of the DatabaseServer of the DedicatedDatabase with this uid. */
export const serverNameOf = (uid: string): string => `dedicated-${tenantSuffix(uid)}`

/** Whether a name is one that {@link serverNameOf} may have made. */
export const isServerName = (name: string): boolean => /^dedicated-[a-z2-7]{10}$/.test(name)

export const serverKeyOf = ({ metadata }: Pick<DedicatedDatabase, 'metadata'>) => ({
  namespace: SHARED_NAMESPACE,
  name: serverNameOf(metadata.uid),
})

/**
 * Returns the clients that may connect, from which the rules of the NetworkPolicy, the Service and the engine derive. Pods of the
 * organization may always connect; `sources` restricts addresses outside the cluster only, and an empty list admits none of them. `edges` names the endpoint of the SSH tunnel.
 */
export function accessOf(
  database: Pick<DedicatedDatabase, 'spec' | 'status'>,
  { closedByDefault }: Pick<PlanSize, 'closedByDefault'>,
  { organization, edges }: Pick<Access, 'organization' | 'edges'>,
): Access {
  const insiders = { organization, ...(edges !== undefined && { edges }) }
  if (database.spec.privateNetwork) return { ...insiders, isPrivate: true, sources: [] }
  const rules = firewallRulesOf(database)
  if (!rules) return { ...insiders, isPrivate: false, ...(closedByDefault && { sources: [] }) }
  return { ...insiders, isPrivate: false, sources: [...new Set(rules.map(({ cidr }) => cidr))] }
}

export const sizeOf = ({ cpu, memoryMiB, storageGiB }: PlanSize): Size => ({ cpu, memoryMiB, storageGiB })

/** Returns the draft of a database's server. */
export function serverOf(database: DedicatedDatabase, shape: ServerShape): Draft<typeof DatabaseServer> {
  const { motor, region } = database.spec
  return {
    metadata: { ...serverKeyOf(database), finalizers: [FINALIZER] },
    spec: { motor, region, tenancy: 'dedicated', capacity: 1, ...shape, ...restoreOf(database) },
  }
}

function restoreOf({ spec }: DedicatedDatabase): Pick<ServerSpec, 'restore'> {
  const { restoreFrom } = spec
  return restoreFrom ? { restore: { prefix: restoreFrom.databaseId.toLowerCase(), time: restoreFrom.time } } : {}
}

/** Prefix of the objects of a database in the repository, if it has the add-on. */
export const prefixOf = ({ metadata, spec }: DedicatedDatabase): ServerShape['archive'] =>
  spec.pointInTimeRecovery ? { prefix: metadata.uid } : undefined

/** Returns the database whose names label the metrics of its server; undefined without the add-on. */
export const monitoringOf = ({ metadata, spec }: DedicatedDatabase): ServerShape['monitoring'] =>
  spec.monitoring ? { namespace: metadata.namespace ?? '', database: metadata.name } : undefined

/** Returns the merge patch that gives a server its size, access and add-ons. Null removes a former value. */
export const patchOf = ({ size, access, archive, monitoring }: ServerShape) => ({
  spec: {
    size,
    access: { ...access, sources: access.sources ?? null, edges: access.edges ?? null },
    archive: archive ?? null,
    monitoring: monitoring ?? null,
  },
})
