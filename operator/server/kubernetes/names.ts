import type { DatabaseServer } from '../../../crds/database-server.ts'
import { DatabaseServer as Kind } from '../../../crds/database-server.ts'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { labels } from '../../../crds/names.ts'

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
