import type { V1PodDisruptionBudget, V1Role, V1RoleBinding, V1ServiceAccount } from '@kubernetes/client-node'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { edgeName, unknownHostsSecret } from '../../../shared/edge-objects.ts'
import type { Plain } from '../../kubernetes/plain.ts'
import { keyIn, metadataOf, selectorOf } from './names.ts'

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
export const subjectOf = (endpoint: string) => ({ kind: 'ServiceAccount' as const, ...keyIn(edgeName(endpoint)) })

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
