import { z } from 'zod'

/** Error of a kind's schema or rules, found while CRDs are generated. `code`: `not_structural` or `unknown_path`. */
export class SchemaError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Entry of `x-kubernetes-validations`: a CEL rule. */
export interface ValidationRule {
  readonly rule: string
  readonly message: string
  /** JSON path of the field at fault, relative to the schema that holds the rule: `.motor`. */
  readonly fieldPath?: string
}

/**
 * Structural schema (Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions", "Specifying a structural schema");
 * only the keywords that Mooring uses.
 */
export interface StructuralSchema {
  type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  format?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  pattern?: string
  maxLength?: number
  maxItems?: number
  minimum?: number
  maximum?: number
  required?: string[]
  properties?: Record<string, StructuralSchema>
  items?: StructuralSchema
  additionalProperties?: StructuralSchema
  maxProperties?: number
  'x-kubernetes-validations'?: ValidationRule[]
}

const ALLOWED = new Set([
  ...['type', 'format', 'description', 'default', 'enum', 'pattern', 'minLength', 'maxLength', 'nullable'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'items', 'minItems', 'maxItems'],
  ...['properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties', 'x-kubernetes-validations'],
])

/**
 * Converts a zod schema into a structural schema, with descriptions and defaults. The caller may change the result.
 * @throws SchemaError `not_structural` with path and keyword when an API server would reject the schema (a union, a strict object …)
 */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'record') Object.assign(jsonSchema, keyRule(zodSchema._zod.def.keyType))
      if (zodSchema._zod.def.type === 'string') replacePattern(zodSchema, jsonSchema as unknown as StructuralSchema)
    },
  })
  const structural = json as unknown as StructuralSchema
  normalize(structural, '')
  return structural
}

/** Returns the length bound of a map's keys as a CEL rule: OpenAPI 3.0 has no keyword for it. */
function keyRule(keyType: z.core.$ZodType): Pick<StructuralSchema, 'x-kubernetes-validations'> {
  const { maxLength } = z.toJSONSchema(keyType)
  if (maxLength === undefined) return {}
  const message = `keys may have at most ${maxLength} characters`
  return { 'x-kubernetes-validations': [{ rule: `self.all(key, size(key) <= ${maxLength})`, message }] }
}

/** Replaces a pattern that has an error message by a CEL rule with that message: for a pattern, an API server reports only the expression. */
function replacePattern(schema: z.core.$ZodType, json: StructuralSchema): void {
  const { pattern } = json
  const message = pattern === undefined ? undefined : messageOf(schema._zod.def as unknown as StringDef, pattern)
  if (message === undefined) return
  delete json.pattern
  // CEL parses a date-time into a timestamp, on which `matches` does not work.
  if (json.format === 'date-time') delete json.format
  json['x-kubernetes-validations'] = [{ rule: `self.matches(${JSON.stringify(pattern)})`, message }]
}

/** Parts of zod's definition of a string, or of one of its checks, that this file reads. */
interface StringDef {
  readonly pattern?: RegExp
  readonly error?: (issue: object) => unknown
  readonly checks?: readonly { readonly _zod: { readonly def: StringDef } }[]
}

function messageOf(def: StringDef, pattern: string): string | undefined {
  const checks = [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)]
  const message = checks.find((check) => check.pattern?.source === pattern)?.error?.({})
  return typeof message === 'string' ? message : undefined
}

function normalize(schema: StructuralSchema, path: string): void {
  const unfit = unfitKeyword(schema)
  if (unfit !== undefined) {
    throw new SchemaError('not_structural', `${path || 'the schema'}: a structural schema cannot hold ${unfit}`)
  }
  if (schema.type === 'integer') normalizeInteger(schema)
  for (const [name, property] of Object.entries(schema.properties ?? {})) normalize(property, path ? `${path}.${name}` : name)
  if (schema.items) normalize(schema.items, `${path}[]`)
  if (schema.additionalProperties) normalize(schema.additionalProperties, `${path}{}`)
}

function unfitKeyword(schema: StructuralSchema): string | undefined {
  if (typeof schema.additionalProperties === 'boolean') return 'additionalProperties: true or false'
  return Object.keys(schema).find((keyword) => !ALLOWED.has(keyword))
}

function normalizeInteger(schema: StructuralSchema): void {
  schema.format = 'int64'
  // zod adds the bounds of JavaScript's safe integers; they are no rule of the field.
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
}

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
