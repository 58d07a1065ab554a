import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type FieldError, MooringError } from './errors.ts'
import { fieldErrorsOf } from './field-errors.ts'
import { type Fields, isFields } from '../crds/formats/fields.ts'
import { apiVersionOf, type Kind } from '../crds/kind.ts'
import { looseDeep, strictDeep } from './strict.ts'
import { IMMUTABLE_MESSAGE } from '../crds/schema/structural-schema.ts'

export { fieldErrorsOf } from './field-errors.ts'

/** Error of an object that breaks its schema or a rule; `fields` names every violation. */
export class InvalidObjectError extends MooringError {
  readonly fields: readonly FieldError[]

  constructor(kind: Pick<Kind, 'kind'>, fields: readonly FieldError[]) {
    super('invalid', `${kind.kind} is invalid: ${fields.map(({ field, message }) => `${field} ${message}`).join('; ')}`)
    this.fields = fields
  }
}

/**
 * Checks a whole object (metadata and body, status included) as the API server would with the kind's CRD, and returns its
 * body with defaults. Unknown fields are errors for Mooring's own kinds and are kept for Kubernetes' kinds. When `old`, the
 * stored object, is given, its name and the kind's `immutable` paths must not differ. Rules do not apply to a spec that stays as it is
 * stored, perhaps under earlier rules.
 * @throws InvalidObjectError with every violation
 */
export function validate<K extends Kind>(kind: K, object: unknown, old?: unknown): z.output<K['body']> {
  const { apiVersion, kind: name, metadata, ...body } = fieldsOf(object)
  const schema: z.ZodObject = kind.custom ? strictDeep(kind.body) : looseDeep(kind.body)
  const parsed = schema.safeParse(body)
  const errors = [...typeErrors(kind, { apiVersion, kind: name }), ...metadataErrors(kind, metadata, fieldsOf(old).metadata)]
  if (!parsed.success) errors.push(...fieldErrorsOf(parsed.error))
  else if (!isDeepStrictEqual(parsed.data.spec, fieldsOf(old).spec))
    errors.push(...ruleErrors(kind, parsed.data, fieldsOf(metadata)))
  if (isFields(old)) errors.push(...immutabilityErrors(kind, parsed.success ? parsed.data : body, old, parsed.success))
  if (errors.length > 0 || !parsed.success) throw new InvalidObjectError(kind, errors)
  return parsed.data as z.output<K['body']>
}

const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {})

/** Returns the value at a dotted path, or undefined. */
function at(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (isFields(value) ? value[key] : undefined), object)
}

function typeErrors(kind: Kind, { apiVersion, kind: name }: Fields): FieldError[] {
  const errors: FieldError[] = []
  if (apiVersion !== undefined && apiVersion !== apiVersionOf(kind)) {
    errors.push({ field: 'apiVersion', message: `must be ${apiVersionOf(kind)}` })
  }
  if (name !== undefined && name !== kind.kind) errors.push({ field: 'kind', message: `must be ${kind.kind}` })
  return errors
}

function metadataErrors(kind: Kind, metadata: unknown, old: unknown): FieldError[] {
  const parsed = metadataOf(kind).safeParse(metadata)
  const errors = parsed.success ? [] : fieldErrorsOf(parsed.error, ['metadata'])
  if (!isFields(old)) return errors
  const changed = ['name', 'namespace', 'uid'].filter((field) => fieldsOf(metadata)[field] !== old[field])
  return [...errors, ...changed.map((field) => ({ field: `metadata.${field}`, message: IMMUTABLE_MESSAGE }))]
}

/** Returns changes of immutable fields. A body that did not parse has no defaults, so absent fields count as unchanged. */
function immutabilityErrors(kind: Kind, body: Fields, old: Fields, parsed: boolean): FieldError[] {
  return kind.immutable
    .filter((path) => parsed || at(body, path) !== undefined)
    .filter((path) => !isDeepStrictEqual(at(body, path), at(old, path)))
    .map((field) => ({ field, message: IMMUTABLE_MESSAGE }))
}

function ruleErrors(kind: Kind, body: Fields, metadata: Fields): FieldError[] {
  const about = { name: String(metadata.name) }
  return kind.rules.filter((rule) => !rule.holds(body.spec as never, about)).map(({ field, message }) => ({ field, message }))
}

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
