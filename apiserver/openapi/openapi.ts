import { SLUG, SLUG_MAX } from '../../crds/names.ts'
import { type ApiCode, STATUS_OF } from '../http/errors.ts'
import { ERROR_STATUSES, errorName, HTTP_REJECTIONS, operationOf, tagsOf } from './openapi-operation.ts'
import { EXAMPLE, createSchemas, type JsonObject } from './openapi-schemas.ts'
import type { AnyRoute } from '../http/route.ts'

const DESCRIPTION = `Databases, and public URLs for your own machine, each created by one request.

**Start.** Every request carries \`Authorization: Bearer …\`: a JWT of an issuer that this installation trusts, or an API token (\`moor_…\`). \`GET /v1/me\`
returns your user name and your roles. \`GET /v1/regions\` lists the regions. \`POST /v1/instances\` creates a database and
\`POST /v1/organizations/{organization}/namespaces/{namespace}/tunnels\` a tunnel.

**Answers.** A success is \`{"msg":"OK","data":{…}}\`; an error is \`{"msg":"<a sentence>","error":{"code","details","requestId"}}\`. Branch on the code;
\`details\` names each wrong field. Times are RFC 3339 in UTC. An unknown field or query parameter is an error.

**Namespaces.** Databases, tunnels, members and API tokens are in a namespace of an organization. A request without a namespace in its path uses
the namespace of the token, else that of the header \`Mooring-Namespace\`, else the only one in which you have a role.

**Roles.** A viewer reads everything except secrets; an editor also creates, changes and deletes, and reads credentials; an admin also manages members and
API tokens. Platform admins create organizations and namespaces.

**Lists** have pages, newest first: \`?limit=\`, and \`?cursor=\` with the \`nextCursor\` of the previous page.

**Repeating.** A POST with an \`Idempotency-Key\` can be repeated and gives the same answer. A change with \`If-Match\` is made only at that version;
\`ETag\` is the version of the resource in an answer. A PATCH is a JSON merge patch (RFC 7396).

**Limits.** 429 and 503 have \`Retry-After\` with the seconds to wait. The maximum of a body is 64 KiB, of the request line and headers together 16 KiB (431),
of a URL 8,192 characters. Text in a path is percent-encoded: the identifier \`feature/a b#1\` is \`feature%2Fa%20b%231\`.`

/** Returns the OpenAPI 3.1 document of the given routes: all, or those of one listener. Pure. */
export function openApiDocument(routes: readonly AnyRoute[]): JsonObject {
  const schemas = createSchemas()
  const paths: Record<string, Record<string, JsonObject>> = {}
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route, schemas) }
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
    tags: tagsOf(routes.map(({ path }) => path)),
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

/** SLUG (crds/names.ts) without its anchors. */
const SLUG_PATTERN = SLUG.source.slice(1, -1)
const ENTITY_TAG = '((W/)?"[!#-~]*"|[A-Za-z0-9_.-]+)'

const PARAMETERS = {
  MooringNamespace: {
    name: 'Mooring-Namespace',
    in: 'header',
    description:
      'Namespace of the request, as `organization/namespace`; required when the token names none and you have roles in several. A namespace other than the token’s is 400.',
    schema: { type: 'string', pattern: `^${SLUG_PATTERN}/${SLUG_PATTERN}$`, maxLength: 2 * SLUG_MAX + 1 },
    example: `${EXAMPLE.organization}/${EXAMPLE.namespace}`,
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'The same key with the same body gives the same answer. A key can be used again once its resource is deleted.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: '`ETag` of an earlier answer, or several, or `*`: 409 when the resource has none of these versions.',
    schema: { type: 'string', pattern: `^ *(\\*|${ENTITY_TAG}( *, *${ENTITY_TAG})*) *$` },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description: 'Your own id of the request: 1 to 128 letters, digits and `._:-`. Any other text is replaced by a new id.',
    schema: { type: 'string' },
  },
}

const HEADERS = {
  RequestId: {
    description: 'Id of the request; quote it when you report a problem.',
    required: true,
    schema: { type: 'string' },
  },
  ETag: { description: 'Version of the one resource in the answer, for `If-Match`.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer' } },
  WwwAuthenticate: { description: 'Authentication scheme.', schema: { type: 'string' } },
}

const CODES = Object.entries(STATUS_OF) as readonly (readonly [ApiCode, number])[]

const ERROR = {
  type: 'object',
  properties: {
    msg: { type: 'string', description: 'Error message; never `OK`.' },
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', enum: CODES.map(([code]) => code), description: 'Stable code; branch on it.' },
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
    description: `${HTTP_REJECTIONS[status] ?? codes.join(', ')}.`,
    headers: { 'X-Request-Id': header('RequestId'), ...EXTRA_HEADERS[status] },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  }
}
