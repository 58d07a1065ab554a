import type { Kind } from '../../crds/kind.ts'
import type { Key, Preconditions } from '../port.ts'
import type { KubernetesClient } from './client.ts'
import { objectPath } from './paths.ts'
import { readObject } from './read.ts'
import { storeErrorOf } from './status.ts'

/**
 * The deletion of the port; dependants are collected in the background.
 * @throws StoreError
 */
export async function removeObject(client: KubernetesClient, kind: Kind, key: Key, preconditions: Preconditions): Promise<void> {
  const { resourceVersion, uid } = preconditions
  const conditions = { resourceVersion, uid }
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions: conditions }
  const answer = await client.request({ method: 'DELETE', path: objectPath(kind, key), body })
  if (answer.status < 300) return
  const error = storeErrorOf(answer, { kind, ...key })
  if (error.code !== 'conflict') throw error
  // A Namespace that is being deleted refuses to be deleted again: what was wished for is under way.
  const current = await readObject(client, kind, key)
  const isDeleting = current?.metadata.deletionTimestamp !== undefined
  if (!isDeleting || resourceVersion !== undefined || (uid !== undefined && uid !== current.metadata.uid)) throw error
}
