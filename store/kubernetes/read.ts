import type { Kind, Resource } from '../../crds/kind.ts'
import type { Key } from '../port.ts'
import type { KubernetesClient } from './client.ts'
import { objectPath } from './paths.ts'
import { resourceOf } from './resource.ts'
import { storeErrorOf } from './status.ts'

/** The newest state of an object, undefined when there is none. @throws StoreError */
export async function readObject<K extends Kind>(client: KubernetesClient, kind: K, key: Key): Promise<Resource<K> | undefined> {
  const answer = await client.request({ method: 'GET', path: objectPath(kind, key) })
  if (answer.status === 200) return resourceOf(kind, answer.body)
  const error = storeErrorOf(answer, { kind, ...key })
  if (error.code === 'not_found') return undefined
  throw error
}
