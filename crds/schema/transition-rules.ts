import { MooringError } from '../../shared/errors.ts'
import type { StructuralSchema, ValidationRule } from './structural-schema.ts'

/** What both stores say of a changed field that is immutable. */
export const IMMUTABLE_MESSAGE = 'is immutable'

// Kubernetes, "Validation rules": property names that are CEL keywords are written between double underscores.
const CEL_KEYWORDS = new Set([
  ...['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import'],
  ...['let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'],
])

/**
 * Adds the CEL rule that makes `path` (dotted, from the object's root: `spec.region`) immutable.
 *
 * A transition rule is only evaluated where a value stands both before and after a change. So it is put on the field itself when that
 * is always there (required or defaulted, and all above it too), else on the deepest ancestor that always is, where the rule also
 * forbids that the field is added or removed.
 * @throws MooringError `unknown_path` when the schema has no such field
 */
export function addTransitionRule(root: StructuralSchema, path: string): void {
  const segments = path.split('.')
  let anchor = root
  let depth = 0
  for (let next = anchor; depth < segments.length && isAlwaysThere(next, segments[depth]); depth += 1) {
    next = child(next, segments[depth], path)
    anchor = next
  }
  segments.slice(depth).reduce((schema, segment) => child(schema, segment, path), anchor)
  addRule(anchor, ruleFor(segments.slice(depth)))
}

/** Appends a CEL rule to those that a schema has. */
export function addRule(schema: StructuralSchema, rule: ValidationRule): void {
  schema['x-kubernetes-validations'] = [...(schema['x-kubernetes-validations'] ?? []), rule]
}

function ruleFor(rest: readonly string[]): ValidationRule {
  if (rest.length === 0) return { rule: 'self == oldSelf', message: IMMUTABLE_MESSAGE }
  const names = rest.map((name) => (CEL_KEYWORDS.has(name) ? `__${name}__` : name))
  const has = (object: string) => names.map((_, i) => `has(${[object, ...names.slice(0, i + 1)].join('.')})`).join(' && ')
  const at = (object: string) => [object, ...names].join('.')
  const rule = `${has('self')} ? ${has('oldSelf')} && ${at('self')} == ${at('oldSelf')} : !(${has('oldSelf')})`
  return { rule, message: IMMUTABLE_MESSAGE, fieldPath: `.${rest.join('.')}` }
}

function isAlwaysThere(schema: StructuralSchema, name: string | undefined): boolean {
  if (name === undefined) return false
  return schema.required?.includes(name) === true || schema.properties?.[name]?.default !== undefined
}

function child(schema: StructuralSchema, name: string | undefined, path: string): StructuralSchema {
  const found = name === undefined ? undefined : schema.properties?.[name]
  if (!found) throw new MooringError('unknown_path', `the schema has no field ${path}`)
  return found
}
