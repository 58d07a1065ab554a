import { z } from 'zod'
import type { Kind, Resource } from '../../crds/kind.ts'
import { isStoreError } from '../errors.ts'
import type { ListOptions, ListResult } from '../port.ts'
import type { KubernetesClient } from './client.ts'
import { collectionPath, labelSelector } from './paths.ts'
import { resourceOf } from './resource.ts'
import { storeErrorOf } from './status.ts'

/** Objects a page, as client-go's pager asks for. */
const PAGE = 500

const List = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().default('') }),
  items: z.array(z.unknown()).nullish(),
})

const order = <K extends Kind>({ metadata: a }: Resource<K>, { metadata: b }: Resource<K>): number =>
  compare(a.namespace ?? '', b.namespace ?? '') || compare(a.name, b.name)
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/**
 * The list of the port: all pages at one revision. One whose revision is compacted between two pages is read again, in one piece.
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
    const answer = await client.request({ method: 'GET', path: collectionPath(kind, namespace), query })
    if (answer.status !== 200) throw storeErrorOf(answer, { kind, namespace })
    const page = List.parse(answer.body)
    for (const item of page.items ?? []) items.push(resourceOf(kind, item))
    resourceVersion = page.metadata.resourceVersion
    from = page.metadata.continue
  } while (from !== '')
  // An API server orders by the whole path, in which "/" stands between namespace and name and "-" before it.
  return { items: items.sort(order), resourceVersion }
}
