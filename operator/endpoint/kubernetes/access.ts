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
 * What an endpoint's edges may read of mooring-system: the certificates of their own tunnels and the one for unknownHosts, each by its name, and
 * where their peers are.
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

/** An endpoint's service account, as a binding names it. */
export const subjectOf = (endpoint: string) => ({ kind: 'ServiceAccount' as const, ...keyIn(edgeName(endpoint)) })

/** A node is emptied of one edge at a time. */
export function disruptionBudgetOf(endpoint: TunnelEndpoint): Plain<V1PodDisruptionBudget> {
  const { name } = endpoint.metadata
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: metadataOf(endpoint, edgeName(name)),
    spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(name) } },
  }
}
