import type { V1PodDisruptionBudget, V1Role, V1RoleBinding, V1ServiceAccount } from '@kubernetes/client-node'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { edgeName, unknownHostsSecret } from '../../../shared/edge-objects.ts'
import type { Plain } from '../../kubernetes/kinds.ts'
import { keyIn, metadataOf, selectorOf, EDGE_CLUSTER_ROLE } from './kinds.ts'
import { ClusterRoleBinding } from '../../../crds/core.ts'
import type { Store } from '../../../store/port.ts'

const RBAC = 'rbac.authorization.k8s.io'

export function serviceAccountOf(endpoint: TunnelEndpoint): Plain<V1ServiceAccount> {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: metadataOf(endpoint, edgeName(endpoint.metadata.name)),
    automountServiceAccountToken: false,
  }
}

/**
 * Role of an endpoint's edges in mooring-system: they may read the certificate Secrets of their own tunnels and the one for unknown hosts,
 * each by name, and the addresses of their peers.
 * @param certificates names of the Secrets of tunnels
 */
export function roleOf(endpoint: TunnelEndpoint, certificates: readonly string[]): Plain<V1Role> {
  const { name } = endpoint.metadata
  const resourceNames = [unknownHostsSecret(name), ...certificates]
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'Role',
    metadata: metadataOf(endpoint, edgeName(name)),
    rules: [
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames, verbs: ['get'] },
    ],
  }
}

export function roleBindingOf(endpoint: TunnelEndpoint): Plain<V1RoleBinding> {
  const name = edgeName(endpoint.metadata.name)
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: metadataOf(endpoint, name),
    roleRef: { apiGroup: RBAC, kind: 'Role', name },
    subjects: [subjectOf(endpoint.metadata.name)],
  }
}

/** Service account of an endpoint, as the subject of a binding. */
const subjectOf = (endpoint: string) => ({ kind: 'ServiceAccount' as const, ...keyIn(edgeName(endpoint)) })

/** Disruption budget: draining nodes evicts one edge of an endpoint at a time. */
export function disruptionBudgetOf(endpoint: TunnelEndpoint): Plain<V1PodDisruptionBudget> {
  const { name } = endpoint.metadata
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: metadataOf(endpoint, edgeName(name)),
    spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(name) } },
  }
}

/**
 * Binds the service accounts of the edges of all endpoints, and no others, to the ClusterRole that lets them read what they serve. The
 * chart makes the binding with a fixed role: the permission to change its subjects grants nothing else.
 * @param endpoints all endpoints; called after the binding was read, as several calls may run at once
 * @throws StoreError `not_found` when the binding was deleted: helm restores it
 */
export async function bindEdges(store: Store, endpoints: () => readonly TunnelEndpoint[]): Promise<void> {
  const key = { name: EDGE_CLUSTER_ROLE }
  const found = await store.get(ClusterRoleBinding, key)
  const living = endpoints().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const desired = living
    .map(({ metadata }) => metadata.name)
    .sort()
    .map(subjectOf)
  if (found && isSame(found.subjects, desired)) return
  await store.mergePatch(ClusterRoleBinding, key, { subjects: desired })
}

type Subjects = ClusterRoleBinding['subjects']

const isSame = (found: Subjects, desired: Subjects): boolean => textOf(found) === textOf(desired)

const textOf = (subjects: Subjects): string =>
  JSON.stringify(subjects.map(({ kind, namespace, name }) => [kind, namespace, name]).sort())
