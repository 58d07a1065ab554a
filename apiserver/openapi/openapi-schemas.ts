import { z } from 'zod'

/** Any part of an OpenAPI document. */
export type JsonObject = Readonly<Record<string, unknown>>

/** A JSON Schema 2020-12 object, as far as it is read here. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

/** What a schema describes: what a caller sends, or what it gets. */
export type Direction = 'input' | 'output'

export interface Schemas {
  /** The schema as OpenAPI has it: what has an id (`.meta({ id })`) is a `$ref` into the components. */
  of(schema: z.ZodType, direction: Direction): JsonSchema
  /** All that has been referred to so far, by id. */
  components(): Readonly<Record<string, JsonSchema>>
}

const DEFS = '#/$defs/'
const COMPONENTS = '#/components/schemas/'

/** Collects the schemas of one document. */
export function createSchemas(): Schemas {
  const named = new Map<string, JsonSchema>()

  function of(schema: z.ZodType, direction: Direction): JsonSchema {
    const json = z.toJSONSchema(schema, { io: direction, override: ({ jsonSchema }) => plain(jsonSchema, direction) })
    const { $defs = {}, ...described } = moveRefs(json) as JsonSchema & { $defs?: Record<string, JsonSchema> }
    for (const [id, definition] of Object.entries($defs)) named.set(id, definition)
    // The document as a whole is in this dialect.
    return Object.fromEntries(Object.entries(described).filter(([keyword]) => keyword !== '$schema'))
  }

  return { of, components: () => Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))) }
}

/** Requests are strict at every depth; answers may gain fields, so no client may refuse them. */
function plain(json: z.core.JSONSchema.BaseSchema, direction: Direction): void {
  if (json.type === 'object' && direction === 'input') json.additionalProperties = false
  if (json.type === 'object' && direction === 'output') delete json.additionalProperties
  // Zod spells out what `format` and `type` say already.
  if (json.format !== undefined) delete json.pattern
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
}

/** The same JSON with every reference into `$defs` pointing into the document's components. */
function moveRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(moveRefs)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => {
      const isRef = key === '$ref' && typeof field === 'string' && field.startsWith(DEFS)
      return [key, isRef ? COMPONENTS + field.slice(DEFS.length) : moveRefs(field)]
    }),
  )
}
