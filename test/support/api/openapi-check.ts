import { z } from 'zod'
import { literalFirst } from '../../../apiserver/http/route.ts'

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

/** An answer to one request, as far as a document speaks of it. */
export interface Exchange {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly status: number
  readonly body: unknown
}

/** @throws Error when the document does not allow the answer */
export type OpenApiCheck = (exchange: Exchange) => void

/** Makes the check of an OpenAPI 3.1 document. Paths and methods that it does not name are not its matter. */
export function createOpenApiCheck(json: unknown): OpenApiCheck {
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

  return function check({ method, path, status, body }) {
    const operation = paths.find(({ matches }) => matches(path))?.operations[method.toLowerCase()]
    if (!operation) return
    const schema = schemaOf(operation, status)
    if (!schema) throw new Error(`OpenAPI knows no ${status} of ${operation.operationId}`)
    const result = schema.safeParse(body)
    if (!result.success) throw new Error(`OpenAPI has ${operation.operationId} ${status} otherwise: ${result.error.message}`)
  }
}

/** `/v1/instances/{id}` */
function matcherOf(template: string): (path: string) => boolean {
  const pattern = new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
  return (path) => pattern.test(path)
}

function resolve({ components }: Document, response: z.output<typeof Response>): z.output<typeof Media> {
  if ('content' in response) return response
  const name = response.$ref.split('/').at(-1) ?? ''
  const found = components.responses[name]
  if (!found) throw new Error(`OpenAPI refers to ${response.$ref}, which is not there`)
  return found
}

/** The document's schemas become `$defs`, where JSON Schema alone looks for them. */
function compile({ components }: Document, { content }: z.output<typeof Media>): z.ZodType {
  const whole = { ...content['application/json'].schema, $defs: components.schemas }
  const text = JSON.stringify(whole).replaceAll('"#/components/schemas/', '"#/$defs/')
  return z.fromJSONSchema(JSON.parse(text) as Parameters<typeof z.fromJSONSchema>[0])
}
