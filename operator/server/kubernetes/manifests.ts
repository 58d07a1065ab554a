import { createHash } from 'node:crypto'
import type { V1Service, V1ConfigMap } from '@kubernetes/client-node'
import { type DatabaseServer, DatabaseServer as Kind } from '../../../crds/database-server.ts'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { labels, JOURNAL_DATABASE } from '../../../crds/names.ts'
import { type AccessRule, admittedSources } from '../../engines/access.ts'
import { EXPORTER_SOURCE } from '../../engines/exporter.ts'
import type { Plain } from '../../kubernetes/kinds.ts'
import type { DesiredServer } from './desired-server.ts'

/** Labels of all objects of database servers; the selector of the watches. */
export const OWNERSHIP = { [labels.managedBy]: 'mooring', 'app.kubernetes.io/component': 'database-server' } as const

/** Names of a server's objects. */
export interface ChildNames {
  readonly statefulSet: string
  readonly pod: string
  readonly service: string
  /** Headless Service that a StatefulSet needs for the names of its pods. */
  readonly pods: string
  readonly policy: string
  readonly config: string
  readonly certificate: string
  /** Secret with the login of the exporter. */
  readonly exporter: string
  /** Claim of the volume with the data, which the StatefulSet makes. */
  readonly claim: string
}

/** Name of the volume with the data in a pod, and of its claim template. */
export const DATA_VOLUME = 'data'

export function childNames(server: string): ChildNames {
  return {
    statefulSet: server,
    pod: `${server}-0`,
    service: server,
    pods: `${server}-pods`,
    policy: server,
    config: `${server}-config`,
    certificate: `${server}-tls`,
    exporter: `${server}-exporter`,
    claim: `${DATA_VOLUME}-${server}-0`,
  }
}

/** Selector of the server's pod and of all its other objects. */
export const selectorOf = (server: string): Record<string, string> => ({ ...OWNERSHIP, [labels.server]: server })

export interface ChildMetadata {
  readonly name: string
  readonly namespace: string
  readonly labels: Record<string, string>
  readonly ownerReferences: { apiVersion: string; kind: string; name: string; uid: string; controller: boolean }[]
}

/** Metadata of a child. Its owner is the DatabaseServer, so that it is deleted even without an operator. */
export function childMetadata(server: Pick<DatabaseServer, 'metadata'>, name: string): ChildMetadata {
  const { metadata } = server
  const owner = { ...ownerReferenceTo(Kind, server), controller: true }
  return { name, namespace: metadata.namespace ?? '', labels: selectorOf(metadata.name), ownerReferences: [owner] }
}

/**
 * Service for callers and the operator. Traffic from outside goes to the server's own node and keeps its source address, so that the
 * NetworkPolicy distinguishes callers from pods of other tenants.
 */
export function serviceOf({ server, engine, exposure, access, backups, exporter }: DesiredServer): Plain<V1Service> {
  const { name } = server.metadata
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMetadata(server, childNames(name).service),
    spec: {
      type: exposure,
      selector: selectorOf(name),
      ports: [portOf(engine)],
      // A pod is ready only if its agent and its exporter are. Clients must reach the server also when one of these fails.
      ...((backups ?? exporter) && { publishNotReadyAddresses: true }),
      ...(exposure !== 'ClusterIP' && { externalTrafficPolicy: 'Local' }),
      ...(exposure === 'LoadBalancer' && access && sourceRanges(access)),
    },
  }
}

/** Range that no client is in: a load balancer without ranges admits every source. */
const NO_CLIENT = '0.0.0.0/32'

function sourceRanges(access: AccessRule): { readonly loadBalancerSourceRanges?: string[] } {
  const { outside } = admittedSources(access, [])
  return outside === undefined ? {} : { loadBalancerSourceRanges: outside.length === 0 ? [NO_CLIENT] : [...outside] }
}

/** Headless Service that gives the pod its DNS name; no client uses it. */
export function podsServiceOf({ server, engine }: DesiredServer): Plain<V1Service> {
  const { name } = server.metadata
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMetadata(server, childNames(name).pods),
    spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: selectorOf(name), ports: [portOf(engine)] },
  }
}

const portOf = ({ name, port }: DesiredServer['engine']) => ({ name, port, targetPort: port, protocol: 'TCP' })

/**
 * ConfigMap of the engine's configuration and the script that creates its data directory. Holds no secret. `podNetworks`: ranges of the pods,
 * of which the NetworkPolicy selects some.
 */
export function configMapOf(desired: DesiredServer, podNetworks: readonly string[]): Plain<V1ConfigMap> {
  const { server, engine, adminPort, admin, outputAt, tls } = desired
  const { capacity, size } = server.spec
  const archives = server.spec.archive !== undefined
  const access = desired.access && { sources: admittedSources(desired.access, insidersOf(desired, podNetworks)).engine }
  const hasExporter = desired.exporter !== undefined
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: childMetadata(server, childNames(server.metadata.name).config),
    data: {
      ...engine.files({
        admin: admin.user,
        adminPort,
        capacity,
        size,
        own: ownDatabases(server),
        outputAt,
        archives,
        tls,
        access,
        hasExporter,
      }),
    },
  }
}

/** Returns the ranges that the engine always admits: those of the cluster's pods and the address of the exporter. */
export const insidersOf = ({ exporter }: Pick<DesiredServer, 'exporter'>, podNetworks: readonly string[]): readonly string[] =>
  exporter ? [...podNetworks, `${EXPORTER_SOURCE}/32`] : podNetworks

const ownDatabases = ({ spec }: DesiredServer['server']): readonly string[] | undefined =>
  spec.tenancy === 'internal' ? [JOURNAL_DATABASE] : undefined

/** Hash of a configuration, set on the pod: a changed configuration restarts the server. Excludes access rules, which the server reloads. */
export function configHash({ engine, access }: DesiredServer, { data = {} }: Plain<V1ConfigMap>): string {
  const files = Object.entries(data).filter(([name]) => !access || name !== engine.accessFile)
  return hashOf(JSON.stringify(files))
}

/** Hash of the access rules in a configuration; undefined for a server that has none there. */
export function accessHash({ engine, access }: DesiredServer, { data = {} }: Plain<V1ConfigMap>): string | undefined {
  const rules = access && engine.accessFile !== undefined ? data[engine.accessFile] : undefined
  return rules === undefined ? undefined : hashOf(rules)
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)
