import { ClusterRoleBinding } from '../../../crds/core.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import type { Store } from '../../../store/port.ts'
import { subjectOf } from './access.ts'
import { EDGE_CLUSTER_ROLE } from './names.ts'

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
