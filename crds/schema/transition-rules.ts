import { SchemaError, type StructuralSchema, type ValidationRule } from './structural-schema.ts'

/** Message of both stores for a change of an immutable field. */
export const IMMUTABLE_MESSAGE = 'is immutable'

// Kubernetes, "Validation rules": property names that are CEL keywords are written between double underscores.
const CEL_KEYWORDS = new Set([
  ...['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import'],
  ...['let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'],
])

/**
 * Adds the CEL rule that makes `path` (dotted, from the object's root: `spec.region`) immutable.
 *
 * An API server evaluates a transition rule only where a value exists both before and after the change. The rule is therefore attached to
 * the field itself when the field always exists (required or with a default, and all its ancestors too). Otherwise it is attached to the
 * deepest ancestor that always exists, where it also forbids adding and removing the field.
 * @throws SchemaError `unknown_path` when the schema has no such field
 */
export function addTransitionRule(root: StructuralSchema, path: string): void {
  const segments = path.split('.')
  let anchor = root
  let depth = 0
  for (let next = anchor; depth < segments.length && alwaysExists(next, segments[depth]); depth += 1) {
    next = child(next, segments[depth], path)
    anchor = next
  }
  segments.slice(depth).reduce((schema, segment) => child(schema, segment, path), anchor)
  addRule(anchor, ruleFor(segments.slice(depth)))
}

/** Appends a CEL rule to the rules of a schema. */
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

function alwaysExists(schema: StructuralSchema, name: string | undefined): boolean {
  if (name === undefined) return false
  return schema.required?.includes(name) === true || schema.properties?.[name]?.default !== undefined
}

function child(schema: StructuralSchema, name: string | undefined, path: string): StructuralSchema {
  const found = name === undefined ? undefined : schema.properties?.[name]
  if (!found) throw new SchemaError('unknown_path', `the schema has no field ${path}`)
  return found
}
