import { z } from 'zod'
import { MooringError } from '../../shared/errors.ts'

/** One entry of `x-kubernetes-validations`: a CEL rule at its place in the schema. */
export interface ValidationRule {
  readonly rule: string
  readonly message: string
  /** JSON path of the field at fault, relative to the schema that holds the rule: `.motor`. */
  readonly fieldPath?: string
}

/**
 * What Mooring uses of a structural schema (Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions": Specifying
 * a structural schema).
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
 * A zod schema as a structural schema, descriptions and defaults included. The result is the caller's own to change.
 * @throws MooringError `not_structural` naming the path and the keyword that an API server would refuse (a union, a strict object …)
 */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'record') Object.assign(jsonSchema, keyRule(zodSchema._zod.def.keyType))
      if (zodSchema._zod.def.type === 'string') sayPattern(zodSchema, jsonSchema as unknown as StructuralSchema)
    },
  })
  const structural = json as unknown as StructuralSchema
  normalize(structural, '')
  return structural
}

/** OpenAPI 3.0 has no word for the keys of a map, so their bound becomes a rule. */
function keyRule(keyType: z.core.$ZodType): Pick<StructuralSchema, 'x-kubernetes-validations'> {
  const { maxLength } = z.toJSONSchema(keyType)
  if (maxLength === undefined) return {}
  const message = `keys may have at most ${maxLength} characters`
  return { 'x-kubernetes-validations': [{ rule: `self.all(key, size(key) <= ${maxLength})`, message }] }
}

/** An API server names a broken pattern by its regular expression alone. One that has words for people becomes a rule that says them. */
function sayPattern(schema: z.core.$ZodType, json: StructuralSchema): void {
  const { pattern } = json
  const words = pattern === undefined ? undefined : wordsOf(schema._zod.def as unknown as StringDef, pattern)
  if (words === undefined) return
  delete json.pattern
  // A CEL rule sees a date-time as a point in time, and how it was written no more.
  if (json.format === 'date-time') delete json.format
  json['x-kubernetes-validations'] = [{ rule: `self.matches(${JSON.stringify(pattern)})`, message: words }]
}

/** What this file reads of a string's definition, or of one of its checks. */
interface StringDef {
  readonly pattern?: RegExp
  readonly error?: (issue: object) => unknown
  readonly checks?: readonly { readonly _zod: { readonly def: StringDef } }[]
}

function wordsOf(def: StringDef, pattern: string): string | undefined {
  const checks = [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)]
  const words = checks.find((check) => check.pattern?.source === pattern)?.error?.({})
  return typeof words === 'string' ? words : undefined
}

function normalize(schema: StructuralSchema, path: string): void {
  const unfit = unfitKeyword(schema)
  if (unfit !== undefined) {
    throw new MooringError('not_structural', `${path || 'the schema'}: a structural schema cannot hold ${unfit}`)
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
  // The bounds of JavaScript's own safe integers say nothing about the field.
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
}
