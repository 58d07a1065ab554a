import { z } from 'zod'
import { apiVersionOf, type Kind, type Resource } from '../../crds/kind.ts'
import { looseDeep } from '../../shared/strict.ts'
import { deepFreeze } from '../port.ts'

/** Fields of ObjectMeta that the port has; the others (such as managedFields) are dropped. */
const Metadata = z.object({
  name: z.string(),
  namespace: z.string().optional(),
  uid: z.string(),
  resourceVersion: z.string(),
  // Kubernetes sets it only for some of its own kinds.
  generation: z.int().default(1),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z
    .array(z.looseObject({ apiVersion: z.string(), kind: z.string(), name: z.string(), uid: z.string() }))
    .optional(),
})
const Sent = z.looseObject({ metadata: Metadata })

/**
 * Converts an object from an API server into a Resource: only metadata that the port has, with defaults, deeply frozen.
 * A body that does not match its schema (it was stored under an older one) is returned unchanged, so that it does not fail a whole list.
 * @throws z.ZodError when the value is not a Kubernetes object
 */
export function resourceOf<K extends Kind>(kind: K, sent: unknown): Resource<K> {
  const { metadata, ...body } = Sent.parse(sent)
  const parsed = looseDeep(kind.body).safeParse(body)
  // Items of a list have no apiVersion and kind. The order of fields is always the same, so that an object has the same JSON from every source.
  const named = { apiVersion: apiVersionOf(kind), kind: kind.kind }
  const object = { ...named, ...(parsed.success ? parsed.data : body), ...named, metadata }
  return deepFreeze(object) as unknown as Resource<K>
}

const enc = encodeURIComponent

/** Returns the path of a collection: `/apis/mooring.dev/v1alpha1/namespaces/acme--prod/sharedinstances`; without a namespace, of all namespaces. */
export function collectionPath({ group, version, plural, namespaced }: Kind, namespace?: string): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return namespaced && namespace !== undefined ? `${root}/namespaces/${enc(namespace)}/${plural}` : `${root}/${plural}`
}

/** Returns the path of an object, or of its `status` subresource. */
export function objectPath(
  kind: Kind,
  key: { readonly namespace?: string | undefined; readonly name: string },
  subresource?: 'status',
): string {
  return `${collectionPath(kind, key.namespace)}/${enc(key.name)}${subresource === undefined ? '' : `/${subresource}`}`
}

/** Returns a label selector: `a=1,b=2`; undefined without labels. */
export function labelSelector(labels: Readonly<Record<string, string>> = {}): string | undefined {
  const all = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  return all.length === 0 ? undefined : all.join(',')
}
