import { z } from 'zod'

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN = new RegExp(`^${LABEL}(\\.${LABEL})*$`)
const NAME_PART = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** Annotations of one object, keys and values together, in bytes (Kubernetes' TotalAnnotationSizeLimitB). */
export const ANNOTATIONS_MAX_BYTES = 256 * 1024

const SUBDOMAIN_RULE = 'must be lower-case letters, digits, "-" and ".", with a letter or digit at either end of each part'
const LABEL_RULE = 'must be lower-case letters, digits and "-", with a letter or digit at either end'
const NAME_RULE = 'must be letters, digits, "-", "_" and ".", with a letter or digit at either end'

/** RFC 1123 subdomain: name of an object. */
const Subdomain = z.string().max(253).regex(SUBDOMAIN, SUBDOMAIN_RULE)
/** RFC 1123 label: name of a Namespace. */
const DnsLabel = z
  .string()
  .max(63)
  .regex(new RegExp(`^${LABEL}$`), LABEL_RULE)

function isQualifiedName(text: string): boolean {
  const [name = '', prefix, ...more] = text.split('/').reverse()
  if (more.length > 0 || name.length > 63 || !NAME_PART.test(name)) return false
  return prefix === undefined || (prefix.length <= 253 && SUBDOMAIN.test(prefix.toLowerCase()))
}

/** `name` or `domain/name`: key of a label or annotation, or a finalizer. */
const QualifiedName = z.string().refine(isQualifiedName, 'must be a name of at most 63 characters, or domain/name')
const LabelValue = z
  .string()
  .max(63)
  .refine((value) => value === '' || NAME_PART.test(value), NAME_RULE)

function bytesOf(entries: Readonly<Record<string, string>>): number {
  return Object.entries(entries).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0)
}

const OwnerReference = z.strictObject({
  apiVersion: z.string().min(1),
  kind: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().min(1),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
})

const optional = {
  labels: z.record(QualifiedName, LabelValue).optional(),
  annotations: z
    .record(QualifiedName, z.string())
    .refine((all) => bytesOf(all) <= ANNOTATIONS_MAX_BYTES, `must be at most ${ANNOTATIONS_MAX_BYTES} bytes in total`)
    .optional(),
  finalizers: z.array(QualifiedName).optional(),
  ownerReferences: z.array(OwnerReference).optional(),
  // Fields that the store sets. Values from callers are ignored or compared, never stored.
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.int().optional(),
  creationTimestamp: z.string().optional(),
  deletionTimestamp: z.string().optional(),
}

const notNamespaced = z.undefined('is not allowed: the kind is cluster-scoped').optional()
const OfNamespace = z.strictObject({ name: DnsLabel, namespace: notNamespaced, ...optional })
const OfCluster = z.strictObject({ name: Subdomain, namespace: notNamespaced, ...optional })
const OfNamespaced = z.strictObject({ name: Subdomain, namespace: DnsLabel, ...optional })

/** Returns the schema of `metadata` for a kind: Kubernetes' rules for names, labels, annotations, finalizers and owners. */
export function metadataOf(kind: { readonly group: string; readonly kind: string; readonly namespaced: boolean }): z.ZodType {
  if (kind.namespaced) return OfNamespaced
  return kind.group === '' && kind.kind === 'Namespace' ? OfNamespace : OfCluster
}
