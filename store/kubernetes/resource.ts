import { z } from 'zod'
import { apiVersionOf, type Kind, type Resource } from '../../crds/kind.ts'
import { looseDeep } from '../../shared/strict.ts'
import { deepFreeze } from '../deep-freeze.ts'

/** All of ObjectMeta that the port knows; the rest (managedFields above all) is dropped. */
const Metadata = z.object({
  name: z.string(),
  namespace: z.string().optional(),
  uid: z.string(),
  resourceVersion: z.string(),
  // Kubernetes counts it only for some of its own kinds.
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
 * An object as an API server sends it, in the port's form: the metadata that the port knows, defaults filled in, deeply frozen.
 * A body that does not fit its schema (it was let in by an older one) is passed as it is: it must not hide all others.
 * @throws z.ZodError when it is no object of Kubernetes at all
 */
export function resourceOf<K extends Kind>(kind: K, sent: unknown): Resource<K> {
  const { metadata, ...body } = Sent.parse(sent)
  const parsed = looseDeep(kind.body).safeParse(body)
  // Items of a list do not say of which kind they are. The order is that of all others, so that an object reads the same wherever it came from.
  const named = { apiVersion: apiVersionOf(kind), kind: kind.kind }
  const object = { ...named, ...(parsed.success ? parsed.data : body), ...named, metadata }
  return deepFreeze(object) as unknown as Resource<K>
}
