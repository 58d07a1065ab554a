import { type ApiCode, STATUS_OF } from './errors.ts'
import { ERROR_STATUSES, errorName, operationOf, tagOf } from './openapi-operation.ts'
import { createSchemas, type JsonObject } from './openapi-schemas.ts'
import type { AnyRoute } from './route.ts'

const DESCRIPTION = `Databases in the answer of one call.

Every call carries \`Authorization: Bearer …\`: a JWT of an issuer that this installation trusts, or an API token (\`moor_…\`).
Answers are \`{"msg":"OK","data":{…}}\`; errors are \`{"msg":"<a sentence>","error":{"code","details","requestId"}}\`.
Times are RFC 3339 in UTC. An unknown field or query parameter is an error.`

const DESCRIPTION_OF_TAG: Readonly<Record<string, string>> = {
  instances: 'Shared databases: one database and one user on a server that others share.',
  regions: 'Where databases and tunnels run.',
  engines: 'Engines of dedicated databases.',
  databases: 'Dedicated databases.',
  me: 'Who the caller is.',
  organizations: 'Organizations, their namespaces, members and API tokens.',
}

/** The OpenAPI 3.1 document of these routes: all of them, or those of one listener. Pure. */
export function openApiDocument(routes: readonly AnyRoute[]): JsonObject {
  const schemas = createSchemas()
  const paths: Record<string, Record<string, JsonObject>> = {}
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route, schemas) }
  const tags = [...new Set(routes.map(({ path }) => tagOf(path)))]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mooring',
      version: 'v1',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The listener that serves this document.' }],
    security: [{ bearer: [] }],
    tags: tags.map((name) => ({ name, description: DESCRIPTION_OF_TAG[name] ?? name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A JWT or an API token.' } },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: Object.fromEntries(ERROR_STATUSES.map((status) => [errorName(status), errorResponse(status)])),
      schemas: { ...schemas.components(), Error: ERROR },
    },
  }
}

const text = (max: number) => ({ type: 'string', minLength: 1, maxLength: max })

const PARAMETERS = {
  MooringNamespace: {
    name: 'Mooring-Namespace',
    in: 'header',
    description:
      'The namespace of this call, as `organization/namespace`; needed when the token names none and you have several. Another than that of the token is 400.',
    schema: { type: 'string' },
    example: 'acme/prod',
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'The same key with the same body gives the same answer; free again once the resource is gone.',
    schema: { ...text(255), pattern: '^[!-~]+$' },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: '`ETag` of an earlier answer, or several, or `*`: 409 when the resource is at none of these versions.',
    schema: { type: 'string' },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description: 'Your own id of this request; one is made otherwise.',
    schema: text(128),
  },
}

const HEADERS = {
  RequestId: { description: 'Quote it when you report a problem.', required: true, schema: { type: 'string' } },
  ETag: { description: 'Version of the one resource in the answer, for `If-Match`.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds after which to try again.', schema: { type: 'integer' } },
  WwwAuthenticate: { description: 'How to authenticate.', schema: { type: 'string' } },
}

const CODES = Object.entries(STATUS_OF) as readonly (readonly [ApiCode, number])[]

const ERROR = {
  type: 'object',
  properties: {
    msg: { type: 'string', description: 'A sentence; never `OK`.' },
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', enum: CODES.map(([code]) => code), description: 'Stable: branch on this.' },
        details: {
          type: 'array',
          items: {
            type: 'object',
            properties: { field: { type: 'string' }, message: { type: 'string' } },
            required: ['field', 'message'],
          },
        },
        requestId: { type: 'string' },
      },
      required: ['code', 'details', 'requestId'],
    },
  },
  required: ['msg', 'error'],
  examples: [
    {
      msg: 'unknown region: 42',
      error: {
        code: 'unknown_region',
        details: [{ field: 'region', message: 'must be the id of a region in GET /v1/regions' }],
        requestId: '7a0c1f0e-2f0b-4c0e-8c55-0f6f3a3f8f10',
      },
    },
  ],
}

const header = (name: keyof typeof HEADERS) => ({ $ref: `#/components/headers/${name}` })
const EXTRA_HEADERS: Readonly<Record<number, JsonObject>> = {
  401: { 'WWW-Authenticate': header('WwwAuthenticate') },
  429: { 'Retry-After': header('RetryAfter') },
  503: { 'Retry-After': header('RetryAfter') },
}

function errorResponse(status: number): JsonObject {
  const codes = CODES.flatMap(([code, of]) => (of === status ? [`\`${code}\``] : []))
  return {
    description: `${codes.join(', ')}.`,
    headers: { 'X-Request-Id': header('RequestId'), ...EXTRA_HEADERS[status] },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  }
}
