import { z } from 'zod'
import type { Kind, Resource } from '../../crds/kind.ts'
import { isStoreError, type Key, type ListOptions, type ListResult } from '../port.ts'
import type { KubernetesClient } from './client.ts'
import { collectionPath, labelSelector, objectPath, resourceOf } from './resource.ts'
import { storeErrorOf } from './status.ts'

/** Objects per page, as in client-go's pager. */
const PAGE = 500

const List = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().default('') }),
  items: z.array(z.unknown()).nullish(),
})

const order = <K extends Kind>({ metadata: a }: Resource<K>, { metadata: b }: Resource<K>): number =>
  compare(a.namespace ?? '', b.namespace ?? '') || compare(a.name, b.name)
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/**
 * Implements `list` of the port: all pages at one revision. When the revision is compacted between two pages, the list is read again
 * without pages.
 * @throws StoreError
 */
export async function listKind<K extends Kind>(client: KubernetesClient, kind: K, options: ListOptions): Promise<ListResult<K>> {
  try {
    return await pages(client, kind, options, PAGE)
  } catch (error) {
    if (!isStoreError(error, 'gone')) throw error
    return pages(client, kind, options)
  }
}

async function pages<K extends Kind>(
  client: KubernetesClient,
  kind: K,
  { namespace, labels }: ListOptions,
  limit?: number,
): Promise<ListResult<K>> {
  const items: Resource<K>[] = []
  let resourceVersion = ''
  let from = ''
  do {
    const query = { labelSelector: labelSelector(labels), limit: limit?.toString(), continue: from === '' ? undefined : from }
    const request = { method: 'GET', path: collectionPath(kind, namespace), query } as const
    const answer = await client.request(request)
    if (answer.status !== 200) throw storeErrorOf(answer, { kind, namespace, request })
    const page = List.parse(answer.body)
    for (const item of page.items ?? []) items.push(resourceOf(kind, item))
    resourceVersion = page.metadata.resourceVersion
    from = page.metadata.continue
  } while (from !== '')
  // An API server orders by the whole path, where the "/" after the namespace sorts after "-".
  return { items: items.sort(order), resourceVersion }
}

/** Reads the newest state of an object. @returns undefined when it does not exist @throws StoreError */
export async function readObject<K extends Kind>(client: KubernetesClient, kind: K, key: Key): Promise<Resource<K> | undefined> {
  const request = { method: 'GET', path: objectPath(kind, key) } as const
  const answer = await client.request(request)
  if (answer.status === 200) return resourceOf(kind, answer.body)
  const error = storeErrorOf(answer, { kind, ...key, request })
  if (error.code === 'not_found') return undefined
  throw error
}
