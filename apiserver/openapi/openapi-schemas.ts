import { z } from 'zod'
import type { Region } from '../../crds/region.ts'

/** Part of an OpenAPI document. */
export type JsonObject = Readonly<Record<string, unknown>>

/** JSON Schema 2020-12 object with the keywords that are read here. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

/** Side of a schema: `input` for requests, `output` for answers. */
type Direction = 'input' | 'output'

export interface Schemas {
  /** Returns the schema for OpenAPI; a schema with an id (`.meta({ id })`) is a `$ref` into the components. */
  of(schema: z.ZodType, direction: Direction): JsonSchema
  /** Returns the schemas referenced so far, by id. */
  components(): Readonly<Record<string, JsonSchema>>
}

const DEFS = '#/$defs/'
const COMPONENTS = '#/components/schemas/'

/** Creates the collector of the schemas of one document. */
export function createSchemas(): Schemas {
  const named = new Map<string, JsonSchema>()

  function of(schema: z.ZodType, direction: Direction): JsonSchema {
    const json = z.toJSONSchema(schema, { io: direction, override: ({ jsonSchema }) => simplify(jsonSchema, direction) })
    const { $defs = {}, ...described } = moveRefs(json) as JsonSchema & { $defs?: Record<string, JsonSchema> }
    for (const [id, definition] of Object.entries($defs)) named.set(id, definition)
    // The OpenAPI document declares the dialect.
    return Object.fromEntries(Object.entries(described).filter(([keyword]) => keyword !== '$schema'))
  }

  return { of, components: () => Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))) }
}

/** Simplifies a schema. Requests are strict at every depth; answers may get new fields, so clients must accept unknown ones. */
function simplify(json: z.core.JSONSchema.BaseSchema, direction: Direction): void {
  if (json.type === 'object' && direction === 'input') json.additionalProperties = false
  if (json.type === 'object' && direction === 'output') delete json.additionalProperties
  // `format` and `type` already imply these keywords of zod.
  if (json.format !== undefined) delete json.pattern
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
}

/** Returns the JSON with every reference into `$defs` changed to the document's components. */
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

/** Values in the examples of the document; no installation has this region. */
export const EXAMPLE = {
  region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01',
  regionId: 1,
  motor: 'postgresql-15.4.0',
  organization: 'default',
  namespace: 'default',
} as const

/** Returns the region for the examples: the first one with motors. */
export function regionForExamples(regions: readonly Region[]): Region | undefined {
  return regions.find(({ spec }) => spec.motors.length > 0) ?? regions[0]
}

/** Whether an example is a request for an instance. A response may be of any motor. */
const isRequest = (example: unknown): example is { readonly motor: unknown } =>
  typeof example === 'object' && example !== null && ['region', 'motor', 'ttl'].every((field) => field in example)

/** Returns the document with an existing region in its examples, and without those of motors that it does not run, so that they work when pasted. Pure. */
export function withRegion(document: JsonObject, region: Region | undefined): JsonObject {
  if (!region) return document
  const { id, regionId, motors } = region.spec
  const motor = motors.find((served) => served.id === EXAMPLE.motor) ?? motors[0]
  const isServed = (example: unknown): boolean => !isRequest(example) || motors.some((served) => served.id === example.motor)
  const put = (key: string, value: unknown): unknown => {
    if (key === 'examples' && Array.isArray(value)) return value.filter(isServed)
    if (value === EXAMPLE.region) return id
    if (key === 'regionId' && value === EXAMPLE.regionId) return regionId
    return (key === 'motor' || key === 'engine') && value === EXAMPLE.motor && motor ? motor.id : value
  }
  return JSON.parse(JSON.stringify(document), put) as JsonObject
}
