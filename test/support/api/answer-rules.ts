import { z } from 'zod'
import { expect } from 'vitest'
import type { Incoming } from './https-client.ts'
import { literalFirst } from '../../../apiserver/http/route.ts'
import type { Instance } from './answers.ts'
import type { Installation } from '../deployment/installation.ts'

const Success = z.strictObject({ msg: z.literal('OK'), data: z.record(z.string(), z.unknown()) })
const Refusal = z.strictObject({
  msg: z
    .string()
    .min(1)
    .refine((msg) => msg !== 'OK'),
  error: z.strictObject({
    code: z.string().regex(/^[a-z_]+$/),
    details: z.array(z.strictObject({ field: z.string(), message: z.string().min(1) })),
    requestId: z.string().min(1),
  }),
})

/**
 * Expects the common form of all responses of the API (docs/api.md, "Errors"). @returns the body @throws Error when the response
 * violates the form
 */
export function expectValidBody({ status, headers, text }: Incoming): unknown {
  const requestId = headers['x-request-id']
  if (typeof requestId !== 'string' || requestId === '') throw new Error(`response ${status} has no X-Request-Id`)
  if (status < 300 && ![200, 201, 202].includes(status)) throw new Error(`response ${status} is not a status of this API`)
  if (!/^application\/json\b/.test(String(headers['content-type']))) {
    throw new Error(`response ${status} is ${String(headers['content-type'])}, not JSON: ${text}`)
  }
  const body: unknown = JSON.parse(text)
  const result = status < 300 ? Success.safeParse(body) : Refusal.safeParse(body)
  if (!result.success) throw new Error(`response ${status} has another form: ${text}: ${result.error.message}`)
  const { data } = result
  if ('error' in data && data.error.requestId !== requestId) throw new Error(`two request ids in one response: ${text}`)
  return body
}

const Media = z.object({ content: z.object({ 'application/json': z.object({ schema: z.record(z.string(), z.unknown()) }) }) })
const Response = z.union([z.object({ $ref: z.string() }), Media])
const Operation = z.looseObject({ operationId: z.string(), responses: z.record(z.string(), Response) })
const Document = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({
    schemas: z.record(z.string(), z.unknown()),
    responses: z.record(z.string(), Media),
  }),
})
type Document = z.output<typeof Document>

/** Request and response, as far as an OpenAPI document describes them. */
export interface Exchange {
  readonly method: string
  /** Path without the query. */
  readonly path: string
  readonly status: number
  readonly body: unknown
}

/** Expects that the document allows a response. @throws Error when it does not */
export type OpenApiExpectation = (exchange: Exchange) => void

/** Creates the expectation for an OpenAPI 3.1 document. It ignores paths and methods that the document does not describe. */
export function createOpenApiExpectation(json: unknown): OpenApiExpectation {
  const document = Document.parse(json)
  const paths = literalFirst(Object.keys(document.paths)).map((template) => ({
    matches: matcherOf(template),
    operations: document.paths[template] ?? {},
  }))
  const known = new Map<string, z.ZodType>()

  function schemaOf(operation: z.output<typeof Operation>, status: number): z.ZodType | undefined {
    const name = `${operation.operationId} ${status}`
    const made = known.get(name)
    if (made) return made
    const response = operation.responses[status]
    if (!response) return undefined
    const schema = compile(document, resolve(document, response))
    known.set(name, schema)
    return schema
  }

  return function expectAllowed({ method, path, status, body }) {
    const operation = paths.find(({ matches }) => matches(path))?.operations[method.toLowerCase()]
    if (!operation) return
    const schema = schemaOf(operation, status)
    if (!schema) throw new Error(`OpenAPI does not describe ${status} of ${operation.operationId}`)
    const result = schema.safeParse(body)
    if (!result.success)
      throw new Error(`OpenAPI describes ${operation.operationId} ${status} differently: ${result.error.message}`)
  }
}

/** Returns a matcher of paths for a template such as `/v1/instances/{id}`. */
function matcherOf(template: string): (path: string) => boolean {
  const pattern = new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
  return (path) => pattern.test(path)
}

function resolve({ components }: Document, response: z.output<typeof Response>): z.output<typeof Media> {
  if ('content' in response) return response
  const name = response.$ref.split('/').at(-1) ?? ''
  const found = components.responses[name]
  if (!found) throw new Error(`OpenAPI refers to ${response.$ref}, which does not exist`)
  return found
}

/** Compiles a schema. The document's schemas become `$defs`, the only location that JSON Schema resolves. */
function compile({ components }: Document, { content }: z.output<typeof Media>): z.ZodType {
  const whole = { ...content['application/json'].schema, $defs: components.schemas }
  const text = JSON.stringify(whole).replaceAll('"#/components/schemas/', '"#/$defs/')
  return z.fromJSONSchema(JSON.parse(text) as Parameters<typeof z.fromJSONSchema>[0])
}

const text = expect.stringMatching(/./) as string

/**
 * Matcher of an instance in the exact form of docs/api.md ("Instances"), without its credentials. `known` replaces the matchers
 * of single fields.
 */
export const shownInstance = ({ region, motor }: Installation, known: Partial<Instance>) => ({
  id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) as string,
  ...{ name: text, user: text, password: null, uri: null },
  isEnabled: true,
  identifier: text,
  host: text,
  port: expect.any(Number) as number,
  region: region.name,
  createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
  motor,
  engineVersion: '15.4',
  expiresAt: null,
  tls: { required: expect.any(Boolean) as boolean, ca: null },
  ...{ statusReason: null, statusCode: null },
  ...known,
})
