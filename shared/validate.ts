import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { type FieldError, MooringError } from './errors.ts'
import { fieldErrorsOf } from './field-errors.ts'
import { type Fields, isFields } from '../crds/formats/fields.ts'
import { apiVersionOf, type Kind } from '../crds/kind.ts'
import { metadataOf } from './metadata.ts'
import { looseDeep, strictDeep } from './strict.ts'
import { IMMUTABLE_MESSAGE } from '../crds/schema/transition-rules.ts'

export { fieldErrorsOf } from './field-errors.ts'

/** Error of an object that breaks its schema or a rule; `fields` names every violation. */
export class InvalidObjectError extends MooringError {
  readonly fields: readonly FieldError[]

  constructor(kind: Pick<Kind, 'kind'>, fields: readonly FieldError[]) {
    super('invalid', `${kind.kind} is invalid: ${fields.map(({ field, message }) => `${field} ${message}`).join('; ')}`)
    this.fields = fields
  }
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

/**
 * Checks a whole object (metadata and body, status included) as the API server would with the kind's CRD, and returns its
 * body with defaults. Unknown fields are errors for Mooring's own kinds and are kept for Kubernetes' kinds. When `old`, the
 * stored object, is given, its name and the kind's `immutable` paths must not differ.
 * @throws InvalidObjectError with every violation
 */
export function validate<K extends Kind>(kind: K, object: unknown, old?: unknown): z.output<K['body']> {
  const { apiVersion, kind: name, metadata, ...body } = fieldsOf(object)
  const schema: z.ZodObject = kind.custom ? strictDeep(kind.body) : looseDeep(kind.body)
  const parsed = schema.safeParse(body)
  const errors = [...typeErrors(kind, { apiVersion, kind: name }), ...metadataErrors(kind, metadata, fieldsOf(old).metadata)]
  if (!parsed.success) errors.push(...fieldErrorsOf(parsed.error))
  else errors.push(...ruleErrors(kind, parsed.data, fieldsOf(metadata)))
  if (isFields(old)) errors.push(...immutabilityErrors(kind, parsed.success ? parsed.data : body, old, parsed.success))
  if (errors.length > 0 || !parsed.success) throw new InvalidObjectError(kind, errors)
  return parsed.data as z.output<K['body']>
}
