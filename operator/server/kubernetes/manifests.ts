import { createHash } from 'node:crypto'
import type { V1Service, V1ConfigMap } from '@kubernetes/client-node'
import { type DatabaseServer, DatabaseServer as Kind } from '../../../crds/database-server.ts'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { labels, JOURNAL_DATABASE } from '../../../crds/names.ts'
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
}

export function childNames(server: string): ChildNames {
  return {
    statefulSet: server,
    pod: `${server}-0`,
    service: server,
    pods: `${server}-pods`,
    policy: server,
    config: `${server}-config`,
    certificate: `${server}-tls`,
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
export function serviceOf({ server, engine, exposure }: DesiredServer): Plain<V1Service> {
  const { name } = server.metadata
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMetadata(server, childNames(name).service),
    spec: {
      type: exposure,
      selector: selectorOf(name),
      ports: [portOf(engine)],
      ...(exposure !== 'ClusterIP' && { externalTrafficPolicy: 'Local' }),
    },
  }
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

/** ConfigMap of the engine's configuration and the script that creates its data directory. Holds no secret. */
export function configMapOf({ server, engine, admin, replaced }: DesiredServer): Plain<V1ConfigMap> {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: childMetadata(server, childNames(server.metadata.name).config),
    data: { ...engine.files({ admin: admin.user, capacity: server.spec.capacity, own: ownDatabases(server), replaced }) },
  }
}

const ownDatabases = ({ spec }: DesiredServer['server']): readonly string[] | undefined =>
  spec.tenancy === 'internal' ? [JOURNAL_DATABASE] : undefined

/** Hash of a configuration, set on the pod: a changed configuration restarts the server. */
export function configHash({ data = {} }: Plain<V1ConfigMap>): string {
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(data)))
    .digest('hex')
    .slice(0, 16)
}
